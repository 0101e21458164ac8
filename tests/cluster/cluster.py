"""The whole cluster, control plane, node and KEDA: as one process starts it, and as others use it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from cluster import keda
from cluster.api import Api, Kubectl
from cluster.control_plane import ADMINISTRATOR, ControlPlane
from cluster.images import Images, keda_images, write_images
from cluster.node import EVENTS
from cluster.pod import TESTS
from cluster.processes import ClusterError, Process
from harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Manifest
    from cluster.programs import Programs

# What a namespace is dumped as when a test in it fails.
KINDS = ("events", "pods", "deployments", "jobs", "scaledobjects", "hpa", "configmaps", "endpointslices", "services")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the node did to a pod, or saw of it.

    Attributes:
        time: Seconds since the epoch.
        event: started, ready, unready, terminating, killed, ended or gone.
        detail: More about it, in words.
    """

    time: float
    event: str
    namespace: str
    pod: str
    detail: str


class Cluster:
    """A running cluster, as any process in its sandbox uses it.

    Args:
        programs: What it runs.
        folder: What it was started with.
        logs: Likewise.
    """

    def __init__(self, programs: Programs, folder: Path, logs: Path) -> None:
        self.logs = logs
        self.kubeconfig = folder / ADMINISTRATOR
        self.kubectl = Kubectl(programs.kubernetes / "kubectl", self.kubeconfig)
        self.api = Api(self.kubeconfig)

    def close(self) -> None:
        """Close the connections."""
        self.api.close()

    def make_namespace(self, name: str) -> None:
        """Make a namespace and wait until pods can be made in it."""
        self.kubectl("create", "namespace", name)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda: self.api.status(account) == httpx.codes.OK, 30, f"{name} has a service account")

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace with all that is in it, pods at once."""
        self.kubectl("delete", "scaledobjects", "--all", f"--namespace={name}")
        self.kubectl("delete", "namespace", name, "--wait=false")
        self.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", f"--namespace={name}")
        path = f"/api/v1/namespaces/{name}"
        wait_until(lambda: self.api.status(path) == httpx.codes.NOT_FOUND, 60, f"the namespace {name} is gone")

    def pods(self, namespace: str, selector: str) -> list[Manifest]:
        """Return the pods with these labels that are not going."""
        found = self.api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def events(self, namespace: str) -> list[Event]:
        """Return what the node did in a namespace so far."""
        return [event for event in self._events() if event.namespace == namespace]

    def log(self, namespace: str, pod: str) -> str:
        """Return what a pod said so far."""
        path = self.logs / namespace / f"{pod}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def dump(self, namespace: str) -> Path:
        """Write the objects of a namespace beside the logs of its pods; return the folder."""
        folder = self.logs / namespace
        folder.mkdir(parents=True, exist_ok=True)
        self.kubectl.dump(folder, namespace, KINDS)
        return folder

    def _events(self) -> Iterator[Event]:
        for line in (self.logs / EVENTS).read_text().splitlines():
            yield Event(**json.loads(line))


class StartedCluster:
    """The processes of a cluster: from its making until `stop`, or the end of the sandbox.

    Args:
        programs: What `programs.build` built.
        images: What pods run, besides KEDA's.
        folder: For everything that is no log.
        logs: Gets what every program and pod says.
        hpa_sync_seconds: How often HPAs are synced; Kubernetes' default is 15.

    Raises:
        ClusterError: A part of it does not do what it must.
    """

    def __init__(
        self, programs: Programs, images: Images, folder: Path, logs: Path, hpa_sync_seconds: int = 15
    ) -> None:
        self._control_plane = ControlPlane(programs.kubernetes, folder, logs, hpa_sync_seconds)
        write_images(folder / "images.json", images | keda_images(programs))
        self._node = Process(
            [sys.executable, "-m", "cluster.node", folder, logs, folder / ADMINISTRATOR, folder / "images.json"],
            logs / "node.log",
            {"PYTHONPATH": str(TESTS), "PATH": os.environ["PATH"]},
        )
        cluster = Cluster(programs, folder, logs)
        try:
            keda.install(cluster.kubectl, cluster.api, programs.keda_source)
        except Exception as error:
            self.check()
            cluster.dump(keda.NAMESPACE)
            raise ClusterError(f"{error}\nthe node says:\n{self._node.tail()}\nlogs: {logs}") from error
        finally:
            cluster.close()

    def check(self) -> None:
        """See that control plane and node run.

        Raises:
            ClusterError: Something does not.
        """
        self._control_plane.check()
        self._node.check()

    def stop(self) -> None:
        """Kill all; pods end with the node."""
        self._node.kill()
        self._control_plane.stop()
