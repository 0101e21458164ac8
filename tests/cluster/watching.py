"""The API as the node uses it: copies of what the API server holds, kept up to date by watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import httpx

from cluster.api import Manifest, connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STRATEGIC = "application/strategic-merge-patch+json"


class NodeApi:
    """Asks the API server, without blocking.

    Args:
        kubeconfig: How to reach it.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._http = httpx.AsyncClient(**connection(kubeconfig), limits=httpx.Limits(max_connections=None))

    async def get(self, path: str) -> Manifest:
        """Return an object.

        Raises:
            httpx.HTTPStatusError: There is none.
        """
        answer = await self._http.get(path)
        answer.raise_for_status()
        found: Manifest = answer.json()
        return found

    async def send(self, method: str, path: str, body: Any, kind: str = "application/json") -> httpx.Response:  # noqa: ANN401 - JSON
        """Write, and return the answer, whatever it is."""
        return await self._http.request(method, path, json=body, headers={"Content-Type": kind})

    async def follow(self, path: str, copies: Copies, changed: Callable[[], None]) -> None:
        """Keep copies of a resource's objects for ever, and tell of each change."""
        while True:
            with contextlib.suppress(httpx.TransportError, httpx.HTTPStatusError):
                listed = await self.get(path)
                copies.replace(listed["items"])
                changed()
                await self._watch(path, listed["metadata"]["resourceVersion"], copies, changed)
            await asyncio.sleep(0.2)

    async def _watch(self, path: str, version: str, copies: Copies, changed: Callable[[], None]) -> None:
        parameters = {"watch": "true", "resourceVersion": version}
        async with self._http.stream("GET", path, params=parameters, timeout=httpx.Timeout(30, read=None)) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return  # the version is too old, most often: list again
                copies.take(event["type"], event["object"])
                changed()


class Copies:
    """Objects of one resource by namespace and name."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Manifest] = {}

    def replace(self, manifests: list[Manifest]) -> None:
        """Hold these and no others."""
        self._found = {_key(manifest): manifest for manifest in manifests}

    def take(self, event: str, manifest: Manifest) -> None:
        """Take in an event of a watch."""
        if event == "DELETED":
            self._found.pop(_key(manifest), None)
        else:
            self._found[_key(manifest)] = manifest

    def all(self) -> list[Manifest]:
        """Return every object."""
        return list(self._found.values())

    def find(self, namespace: str, name: str) -> Manifest | None:
        """Return one object, or None."""
        return self._found.get((namespace, name))


def _key(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
