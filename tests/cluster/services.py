"""Cluster IPs and service names: a proxy for each port of each Service, and a hosts file."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING

from cluster.sandbox import BRIDGE
from harness.program import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from cluster.api import Manifest
    from cluster.watching import Copies

Address = tuple[str, int]

KUBERNETES = ("default", "kubernetes")
CHUNK_BYTES = 65536


class Services:
    """What kube-proxy and a cluster's DNS are elsewhere.

    Args:
        hosts: The file that is /etc/hosts in every container.
    """

    def __init__(self, hosts: Path, services: Copies, slices: Copies) -> None:
        self._hosts, self._services, self._slices = hosts, services, slices
        self._backends: dict[Address, list[Address]] = {}
        self._servers: dict[Address, asyncio.Server] = {}
        self._turn = itertools.count()
        hosts.write_text("127.0.0.1 localhost\n")

    async def refresh(self) -> None:
        """Serve the Services that there are now."""
        lines = ["127.0.0.1 localhost"]
        backends: dict[Address, list[Address]] = {}
        for service in self._services.all():
            metadata, spec = service["metadata"], service["spec"]
            name, namespace, address = metadata["name"], metadata["namespace"], spec.get("clusterIP")
            if address in {None, "", "None"} or (namespace, name) == KUBERNETES:
                continue
            names = [f"{name}.{namespace}{suffix}" for suffix in (".svc.cluster.local", ".svc", "")]
            lines.append(" ".join([address, *names]))
            for port in spec["ports"]:
                backends[address, port["port"]] = list(self._ready(namespace, name, port.get("name", "")))
        self._backends = backends
        for gone in self._servers.keys() - backends.keys():
            self._servers.pop(gone).close()
        for new in backends.keys() - self._servers.keys():
            run(["ip", "addr", "replace", f"{new[0]}/32", "dev", BRIDGE])
            self._servers[new] = await asyncio.start_server(self._serve(new), *new)
        text = "\n".join([*sorted(lines), ""])
        if text != self._hosts.read_text():
            self._hosts.write_text(text)  # in place: it is mounted in containers

    def _ready(self, namespace: str, service: str, port_name: str) -> Iterator[Address]:
        for found in self._slices.all():
            metadata = found["metadata"]
            belongs = (metadata.get("labels") or {}).get("kubernetes.io/service-name") == service
            if metadata["namespace"] != namespace or not belongs:
                continue
            for port in found.get("ports") or []:
                if (port.get("name") or "") == port_name:
                    yield from _addresses(found, port["port"])

    def _serve(self, at: Address) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            backends = self._backends.get(at) or []
            try:
                if not backends:
                    raise ConnectionRefusedError
                backend = backends[next(self._turn) % len(backends)]
                upstream = await asyncio.open_connection(*backend)
            except OSError:
                # Nearest to what kube-proxy does without endpoints: refuse.
                writer.transport.abort()
                return
            await asyncio.gather(_pump(reader, upstream[1]), _pump(upstream[0], writer))

        return connected


def _addresses(found: Manifest, port: int) -> Iterator[Address]:
    for endpoint in found.get("endpoints") or []:
        if (endpoint.get("conditions") or {}).get("ready", True):
            yield from ((address, port) for address in endpoint["addresses"])


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
