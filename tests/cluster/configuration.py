"""What a pod's manifest gives its container: environment and user."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cluster.sandbox import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.api import Manifest
    from cluster.watching import Copies, NodeApi

NODE = "node"

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFERENCE = re.compile(r"\$\((\w+)\)")


class NotYetError(Exception):
    """Something that the pod refers to does not exist; its container must wait."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What pods refer to."""

    api: NodeApi
    config_maps: Copies
    secrets: Copies

    def config_map(self, namespace: str, reference: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the entries of a ConfigMap."""
        manifest = self._required(self.config_maps, "ConfigMap", namespace, reference)
        return {key: value.encode() for key, value in (manifest.get("data") or {}).items()}

    def secret(self, namespace: str, reference: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the entries of a Secret."""
        manifest = self._required(self.secrets, "Secret", namespace, reference)
        return {key: base64.b64decode(value) for key, value in (manifest.get("data") or {}).items()}

    @staticmethod
    def _required(copies: Copies, kind: str, namespace: str, reference: Mapping[str, Any]) -> Manifest:
        name = reference.get("secretName") or reference["name"]
        found = copies.find(namespace, name)
        if found is None and not reference.get("optional"):
            raise NotYetError(f'{kind.lower()} "{name}" not found')
        return found or {}


@dataclass(frozen=True, slots=True)
class User:
    """Whom a container runs as."""

    user: int
    group: int
    groups: list[int]


def user_of(manifest: Manifest, image_user: int) -> User:
    """Return the user that the security contexts name, else the image's.

    Raises:
        NotYetError: It must not be root and is; for ever, as in a cluster.
    """
    spec = manifest["spec"]
    context = (spec.get("securityContext") or {}) | (spec["containers"][0].get("securityContext") or {})
    user = context.get("runAsUser", image_user)
    if context.get("runAsNonRoot") and user == 0:
        raise NotYetError("container has runAsNonRoot and image will run as root")
    own = [context["fsGroup"]] if "fsGroup" in context else []
    return User(user, context.get("runAsGroup", 0 if user == 0 else image_user), own)


def environment(manifest: Manifest, address: str, sources: Sources) -> dict[str, str]:
    """Return a container's environment.

    Raises:
        NotYetError: It refers to what does not exist.
    """
    metadata, container = manifest["metadata"], manifest["spec"]["containers"][0]
    found = {
        "PATH": PATH,
        "HOME": "/",
        "HOSTNAME": metadata["name"],
        "KUBERNETES_SERVICE_HOST": HOST,
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    for source in container.get("envFrom") or []:
        if reference := source.get("configMapRef"):
            found |= _texts(sources.config_map(metadata["namespace"], reference))
        if reference := source.get("secretRef"):
            found |= _texts(sources.secret(metadata["namespace"], reference))
    for item in container.get("env") or []:
        value = item.get("value", "")
        if origin := item.get("valueFrom"):
            value = _value(origin, manifest, address, sources)
        if value is not None:
            found[item["name"]] = expand(value, found)
    return found


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as Kubernetes does; unknown names stay."""
    return REFERENCE.sub(lambda match: values.get(match[1], match[0]), text)


def _value(origin: Mapping[str, Any], manifest: Manifest, address: str, sources: Sources) -> str | None:
    namespace = manifest["metadata"]["namespace"]
    if field := origin.get("fieldRef"):
        return downward(field["fieldPath"], manifest, address)
    if reference := origin.get("secretKeyRef"):
        entries = sources.secret(namespace, reference)
    elif reference := origin.get("configMapKeyRef"):
        entries = sources.config_map(namespace, reference)
    else:
        raise NotYetError(f"this node knows no environment from {', '.join(origin)}")
    if reference["key"] in entries:
        return entries[reference["key"]].decode()
    if reference.get("optional"):
        return None
    raise NotYetError(f'no key "{reference["key"]}" in "{reference["name"]}"')


def downward(path: str, manifest: Manifest, address: str) -> str:
    """Return a field of the downward API."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str((metadata.get(found[1]) or {}).get(found[2], ""))
    fields: dict[str, str] = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": NODE,
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": address,
        "status.hostIP": HOST,
    }
    return fields[path]


def _texts(entries: Mapping[str, bytes]) -> dict[str, str]:
    return {key: value.decode() for key, value in entries.items()}
