"""A pod's volumes, as a kubelet would fill them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cluster.configuration import NotYetError, Sources, downward

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cluster.api import Manifest

DATA = "..data"


class Volumes:
    """A pod's volumes, as folders; ConfigMaps and Secrets change in them as they change in the API.

    Args:
        folder: Gets a folder for each volume.
    """

    def __init__(self, manifest: Manifest, folder: Path, address: str, sources: Sources) -> None:
        self._manifest, self._folder, self._address, self._sources = manifest, folder, address, sources
        self._token: bytes | None = None
        context = manifest["spec"].get("securityContext") or {}
        self._group: int | None = context.get("fsGroup")

    def place(self, name: str) -> Path:
        """Return the folder of a volume."""
        return self._folder / name

    def is_writable(self, name: str) -> bool:
        """Whether the container may write into it."""
        return any(volume["name"] == name and "emptyDir" in volume for volume in self._volumes)

    async def fetch_token(self) -> None:
        """Have the API server make the service account's token, where a volume asks for one."""
        for volume in self._volumes:
            for source in (volume.get("projected") or {}).get("sources") or []:
                if token := source.get("serviceAccountToken"):
                    self._token = await self._made_token(token)

    def refresh(self) -> None:
        """Write what the API server holds now.

        Raises:
            NotYetError: A volume refers to what does not exist.
        """
        for volume in self._volumes:
            place = self.place(volume["name"])
            if "emptyDir" in volume:
                place.mkdir(parents=True, exist_ok=True)
                place.chmod(0o777)
                continue
            place.mkdir(parents=True, exist_ok=True)
            parts = (volume.get("projected") or {}).get("sources") or [volume]
            entries = {path: data for part in parts for path, data in self._entries(part).items()}
            mode = next((source["defaultMode"] for source in volume.values() if "defaultMode" in source), 0o644)
            self._show(place, entries, mode)

    @property
    def _volumes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._manifest["spec"].get("volumes") or []
        return found

    def _entries(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        namespace = self._manifest["metadata"]["namespace"]
        if reference := source.get("configMap"):
            return _chosen(self._sources.config_map(namespace, reference), reference)
        if reference := source.get("secret"):
            return _chosen(self._sources.secret(namespace, reference), reference)
        if token := source.get("serviceAccountToken"):
            assert self._token is not None
            return {token["path"]: self._token}
        if fields := source.get("downwardAPI"):
            return {
                item["path"]: downward(item["fieldRef"]["fieldPath"], self._manifest, self._address).encode()
                for item in fields["items"]
            }
        raise NotYetError(f"this node knows no volume of {', '.join(key for key in source if key != 'name')}")

    def _show(self, place: Path, entries: Mapping[str, bytes], mode: int) -> None:
        """Let all entries change at once, through a symbolic link, as the kubelet does."""
        old = place / DATA
        if old.exists() and {path: (old / path).read_bytes() for path in _files(old)} == dict(entries):
            return
        number = 1 + max((int(found.name[2:]) for found in place.glob("..[0-9]*")), default=0)
        new = place / f"..{number}"
        for path, data in entries.items():
            file = new / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            self._let_read(file, mode)
        new.mkdir(exist_ok=True)
        link = place / "..data_tmp"
        link.symlink_to(new.name)
        link.replace(old)
        first_parts = {path.split("/")[0] for path in entries}
        for found in [found for found in place.iterdir() if not found.name.startswith("..")]:
            if found.name not in first_parts:
                found.unlink()
        for part in first_parts:
            if not (place / part).is_symlink():
                (place / part).symlink_to(f"{DATA}/{part}")

    def _let_read(self, file: Path, mode: int) -> None:
        if self._group is not None:
            os.chown(file, 0, self._group)
            mode |= 0o440
        file.chmod(mode)

    async def _made_token(self, wanted: Mapping[str, Any]) -> bytes:
        metadata, spec = self._manifest["metadata"], self._manifest["spec"]
        owner = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        request: Manifest = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 24 * 3600, "boundObjectRef": owner},
        }
        if audience := wanted.get("audience"):
            request["spec"]["audiences"] = [audience]
        account = spec.get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        answer = await self._sources.api.send("POST", path, request)
        answer.raise_for_status()
        token: str = answer.json()["status"]["token"]
        return token.encode()


def _chosen(entries: Mapping[str, bytes], reference: Mapping[str, Any]) -> dict[str, bytes]:
    items = reference.get("items")
    if items is None:
        return dict(entries)
    missing = [item["key"] for item in items if item["key"] not in entries]
    if missing and not reference.get("optional"):
        raise NotYetError(f"references non-existent key: {', '.join(missing)}")
    return {item["path"]: entries[item["key"]] for item in items if item["key"] in entries}


def _files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
