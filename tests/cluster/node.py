"""The node: `python -m cluster.node FOLDER LOGS KUBECONFIG IMAGES` runs every pod of the cluster as a process.

It is the part of a kubelet, of kube-proxy and of a cluster's DNS that tests of scaling need.
`LOGS/events.jsonl` tells what became of each pod, and when.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.configuration import NODE, Sources
from cluster.images import read_images
from cluster.pod import Pod, Surroundings
from cluster.sandbox import HOST, PODS
from cluster.services import Services
from cluster.watching import STRATEGIC, Copies, NodeApi

if TYPE_CHECKING:
    from cluster.api import Manifest

EVENTS = "events.jsonl"

# Addresses below are the host's, and room for whatever else a test wants to listen there.
FIRST_ADDRESS = 16

SETTLE_SECONDS = 0.05


class Node:
    """Runs what is bound to it, and binds to itself what is bound to nobody: it is the scheduler too."""

    def __init__(self, folder: Path, logs: Path, kubeconfig: Path, images: Path) -> None:
        self._api = NodeApi(kubeconfig)
        self._manifests, self._changed = Copies(), asyncio.Event()
        self._services, self._slices = Copies(), Copies()
        self._sources = Sources(self._api, Copies(), Copies())
        hosts = folder / "hosts"
        self._proxy = Services(hosts, self._services, self._slices)
        self._events = (logs / EVENTS).open("a", buffering=1)
        self._around = Surroundings(self._sources, read_images(images), folder / "pods", logs, hosts, self._tell)
        self._pods: dict[str, Pod] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._numbers = iter(range(FIRST_ADDRESS, PODS.num_addresses - 1))

    async def run(self) -> None:
        """Run for ever."""
        await self._register()
        changed = self._changed.set
        async with asyncio.TaskGroup() as tasks:
            for path, copies in (
                ("/api/v1/pods", self._manifests),
                ("/api/v1/services", self._services),
                ("/apis/discovery.k8s.io/v1/endpointslices", self._slices),
                ("/api/v1/configmaps", self._sources.config_maps),
                ("/api/v1/secrets", self._sources.secrets),
            ):
                tasks.create_task(self._api.follow(path, copies, changed))
            tasks.create_task(self._reconcile_for_ever(tasks))

    async def _reconcile_for_ever(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._changed.clear()
            await self._proxy.refresh()
            for manifest in self._manifests.all():
                await self._reconcile(manifest)
            present = {manifest["metadata"]["uid"] for manifest in self._manifests.all()}
            for uid in self._pods.keys() - present:
                tasks.create_task(self._forget(self._pods.pop(uid), self._ending.pop(uid, None)))
            for pod in self._pods.values():
                pod.refresh()

    async def _reconcile(self, manifest: Manifest) -> None:
        metadata, spec = manifest["metadata"], manifest["spec"]
        uid, leaving = metadata["uid"], "deletionTimestamp" in metadata
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if not spec.get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}, "target": target}
            await self._api.send("POST", f"{path}/binding", binding)
        elif leaving and uid in self._pods:
            if uid not in self._ending:
                grace = metadata.get("deletionGracePeriodSeconds") or 0
                self._ending[uid] = asyncio.create_task(self._pods[uid].terminate(grace))
        elif leaving:
            await self._api.send("DELETE", path, {"gracePeriodSeconds": 0})
        elif uid not in self._pods and manifest["status"].get("phase") == "Pending":
            self._pods[uid] = Pod(manifest, str(PODS[next(self._numbers)]), self._around)

    async def _forget(self, pod: Pod, ending: asyncio.Task[None] | None) -> None:
        if ending is None or not ending.done():
            self._tell("killed", pod, "deleted at once")
        await pod.vanish()
        if ending is not None:
            await ending
        self._tell("gone", pod, "")

    async def _register(self) -> None:
        labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}}
        (await self._api.send("POST", "/api/v1/nodes", node)).raise_for_status()
        now = datetime.now(UTC).isoformat()
        room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        status = {
            "conditions": [{"type": "Ready", "status": "True", "reason": "Up", "lastTransitionTime": now}],
            "addresses": [{"type": "InternalIP", "address": HOST}],
            "capacity": room,
            "allocatable": room,
        }
        answer = await self._api.send("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status}, STRATEGIC)
        answer.raise_for_status()

    def _tell(self, event: str, pod: Pod, detail: str) -> None:
        line = {"time": time.time(), "event": event, "namespace": pod.namespace, "pod": pod.name, "detail": detail}
        self._events.write(json.dumps(line) + "\n")


def main() -> None:
    """Run the node until it is killed."""
    folder, logs, kubeconfig, images = map(Path, sys.argv[1:])
    asyncio.run(_run(folder, logs, kubeconfig, images))


async def _run(folder: Path, logs: Path, kubeconfig: Path, images: Path) -> None:
    await Node(folder, logs, kubeconfig, images).run()


if __name__ == "__main__":
    main()
