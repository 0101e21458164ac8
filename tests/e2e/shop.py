"""A DBOS application with its workers, exporter and ScaledObjects, in a namespace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from dbos import DBOSClient

from cluster.cluster import StartedCluster
from cluster.images import python_image
from cluster.sandbox import HOST, PODS
from harness.helm import CHART, helm
from harness.ports import HOST as LOOPBACK
from harness.postgres import TRUST_EVERYONE, PostgresServer
from harness.program import ProgramFailedError
from harness.roles import reader_of
from harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dbos import EnqueueOptions

    from cluster.api import Manifest
    from cluster.cluster import Cluster
    from cluster.prepared import Prepared

APPLICATION = "shop"
EXPORTER_IMAGE = "registry.example/queue-depth"
WORKER_IMAGE = "registry.example/shop-worker"
WORKER_CHART = CHART.parent / "examples/worker"

# How often HPAs are synced here. Kubernetes' default of 15 s would only make everything take three times as long.
SYNC_SECONDS = 5
COOLDOWN_SECONDS = 8
STABILIZATION_SECONDS = 6

# Long enough for a scale-in that should not happen: the window, and two syncs after it.
STAYS_SECONDS = max(STABILIZATION_SECONDS, COOLDOWN_SECONDS) + 2 * SYNC_SECONDS + 2

# Each of these is a DBOS process that takes two seconds of a core to start.
SCALES_SECONDS = 90

POLL_SECONDS = 0.25

POOL_DEFAULTS: dict[str, Any] = {
    "pollingInterval": 2,
    "cooldownPeriod": COOLDOWN_SECONDS,
    "maxReplicaCount": 12,
    "scaleIn": {"stabilizationWindowSeconds": STABILIZATION_SECONDS},
}


@dataclass(frozen=True, slots=True)
class Run:
    """A workflow as DBOS has it: `executor` is the pod that took it last, `attempts` how often it was started."""

    id: str
    status: str
    queue: str
    executor: str
    attempts: int


def start_cluster(here: Prepared, worker: Path, hpa_sync_seconds: int) -> StartedCluster:
    """Start a cluster that has the exporter's image, and a program of the tests' own environment as the worker's."""
    workers = python_image(sys.executable, worker, environment=Path(sys.prefix), folders=(worker.parent,))
    images = {EXPORTER_IMAGE: here.exporter, WORKER_IMAGE: workers}
    return StartedCluster(here.programs, images, here.folder, here.logs, hpa_sync_seconds)


def server_for_pods(max_connections: int, **settings: str) -> PostgresServer:
    """Return a server that pods reach, not started yet."""
    settings |= {"listen_addresses": "*", "max_connections": f"{max_connections}"}
    return PostgresServer(18, settings=settings, hba=(*TRUST_EVERYONE, f"host all all {PODS} trust"))


class Shop:
    """The application.

    Args:
        cluster: Where it runs.
        namespace: Exists, and is its own.
        dsn: A database with DBOS' tables, as tests reach it.
    """

    def __init__(self, cluster: Cluster, namespace: str, dsn: str) -> None:
        self.cluster, self.namespace, self._dsn = cluster, namespace, dsn
        self.client = DBOSClient(
            system_database_url=dsn.replace("postgresql://", "postgresql+psycopg://", 1), application_name=APPLICATION
        )
        self.put_secret("shop-database", "url", _from_pods(dsn))
        self.put_secret("queue-depth-database", "database-url", _from_pods(reader_of(dsn)))

    def close(self) -> None:
        """Close the connections."""
        self.client.destroy()

    # What is there

    def install(self, pools: Mapping[str, Any] | None = None, **values: Any) -> None:  # noqa: ANN401 - the chart's
        """Install or upgrade the chart, and wait until the exporter answers.

        Raises:
            ProgramFailedError: Helm refuses, or a hook does; carries what it said.
        """
        self.helm("upgrade", "--install", "depth", CHART, values=self.values(pools, **values), timeout=180)

    def values(self, pools: Mapping[str, Any] | None = None, **values: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return values of the chart: one pool `jobs` for the queue `jobs`, unless told otherwise."""
        return {
            "image": {"repository": EXPORTER_IMAGE},
            "exporter": {"replicas": 1, "preStopSeconds": 1, "readinessProbe": {"periodSeconds": 1}},
            "database": {"existingSecret": {"name": "queue-depth-database"}},
            "config": {"refresh_seconds": 1, "max_age_seconds": 10},
            "poolDefaults": POOL_DEFAULTS,
            "pools": pools or {"jobs": {"queues": ["jobs"], "target": {"name": "worker"}}},
            **values,
        }

    def deploy_workers(self, name: str = "worker", *, pods: int = 0, drain_seconds: int = 120) -> None:
        """Install the example chart of a worker, with so many pods for a start."""
        values = {
            "image": f"{WORKER_IMAGE}:1",
            "databaseSecret": "shop-database",
            "drainSeconds": drain_seconds,
        }
        self.helm("install", name, WORKER_CHART, values=values, wait=False)
        self.cluster.kubectl("scale", f"deployment/{name}", f"--replicas={pods}", f"--namespace={self.namespace}")
        # The one pod that a new Deployment begins with would go on taking work: told to go before it has a handler
        # for that, it stays until its grace period is over, as process 1 of any container does.
        self.cluster.kubectl(
            *("delete", "pods", f"--selector=app.kubernetes.io/name={name}", "--force", "--grace-period=0"),
            f"--namespace={self.namespace}",
        )
        self.wait_for_pods(pods, name)

    def helm(
        self, *words: object, values: Mapping[str, Any] | None = None, wait: bool = True, timeout: float = 120
    ) -> str:
        """Run Helm in the namespace and return what it printed.

        Raises:
            ProgramFailedError: It failed; carries what it said.
        """
        command = [str(helm()), *map(str, words), f"--namespace={self.namespace}"]
        command += [f"--kubeconfig={self.cluster.kubeconfig}"]
        if values is not None:
            command += ["--values=-", *(["--wait", f"--timeout={timeout:.0f}s"] if wait else [])]
        done = subprocess.run(
            command,
            input=json.dumps(values or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout + 30,
        )
        if done.returncode != 0:
            raise ProgramFailedError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def put_secret(self, name: str, key: str, value: str) -> None:
        """Write a Secret, or write it anew."""
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "stringData": {key: value},
        }
        self.cluster.kubectl.apply(manifest)

    # Work

    def register_queue(self, name: str = "jobs", **limits: Any) -> None:  # noqa: ANN401 - DBOS's
        """Register a queue with its limits."""
        self.client.register_queue(name, application_name=APPLICATION, **limits)

    def enqueue(self, count: int, queue: str = "jobs", **options: Any) -> list[str]:  # noqa: ANN401 - DBOS's
        """Enqueue jobs and return their ids."""
        wanted: EnqueueOptions = {"queue_name": queue, "workflow_name": "job", "application_name": APPLICATION}
        wanted.update(options)  # type: ignore[typeddict-item]  # any of its options
        return [self.client.enqueue(wanted).workflow_id for _ in range(count)]

    def finish(self, runs: Iterable[str]) -> None:
        """Let jobs end, now or as soon as they have begun."""
        for run in runs:
            self.client.send(run, "finish")

    def runs(self, status: str | None = None) -> list[Run]:
        """Return the workflows, oldest first."""
        statement = (
            "SELECT workflow_uuid, status, queue_name, coalesce(executor_id, ''), recovery_attempts::int"
            " FROM dbos.workflow_status ORDER BY created_at"
        )
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            found = [Run(*row) for row in connection.execute(statement.encode())]
        return [run for run in found if status in {None, run.status}]

    def running(self) -> list[Run]:
        """Return the workflows that are PENDING."""
        return self.runs("PENDING")

    # Pods

    def deployment(self, name: str = "worker") -> Manifest:
        """Return the workers' Deployment."""
        return self.cluster.api.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}")

    def wanted(self, name: str = "worker") -> int:
        """Return how many pods the autoscaler asks for."""
        replicas: int = self.deployment(name)["spec"]["replicas"]
        return replicas

    def pods(self, name: str = "worker") -> set[str]:
        """Return the names of the workers' pods that are not going."""
        found = self.cluster.pods(self.namespace, f"app.kubernetes.io/name={name}")
        return {pod["metadata"]["name"] for pod in found}

    def exporters(self) -> set[str]:
        """Return the names of the exporter's pods that are not going."""
        found = self.cluster.pods(self.namespace, "app.kubernetes.io/component=exporter")
        return {pod["metadata"]["name"] for pod in found}

    def has_hpa(self) -> bool:
        """Whether an HPA scales anything here."""
        path = f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers"
        return self.cluster.api.items(path) != []

    def is_in_doubt(self) -> bool:
        """Whether KEDA could read none of a pool's triggers the last times."""
        (found,) = self.cluster.api.items(f"/apis/keda.sh/v1alpha1/namespaces/{self.namespace}/scaledobjects")
        health = found["status"].get("health", {}).values()
        return bool(health) and all(trigger["status"] == "Failing" for trigger in health)

    def complaints_of_keda(self) -> list[str]:
        """Return what KEDA's operator said of failures here."""
        (operator,) = self.cluster.pods("keda", "app=keda-operator")
        lines = self.cluster.log("keda", operator["metadata"]["name"]).splitlines()
        return [line for line in lines if self.namespace in line and "ERROR" in line]

    def wait_for_pods(self, count: int, name: str = "worker", seconds: float = SCALES_SECONDS) -> None:
        """Wait until the workers are so many, and all started."""

        def reached() -> bool:
            status = self.deployment(name).get("status", {})
            return len(self.pods(name)) == count and status.get("readyReplicas", 0) == count

        self.eventually(reached, f"{count} pods of {name}", seconds)

    def wait_for_runs(self, count: int, status: str = "PENDING", seconds: float = SCALES_SECONDS) -> list[Run]:
        """Wait until so many workflows have that status, and return them."""
        self.eventually(lambda: len(self.runs(status)) == count, f"{count} workflows {status}", seconds)
        return self.runs(status)

    def eventually(self, condition: Callable[[], bool], what: str, seconds: float = SCALES_SECONDS) -> None:
        """Wait for a condition."""
        wait_until(condition, seconds, what, POLL_SECONDS)

    def stays(self, condition: Callable[[], bool], what: str, seconds: float = STAYS_SECONDS) -> None:
        """See that a condition holds all the time, for as long as an autoscaler would need to end it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert condition(), f"not any more: {what}"
            time.sleep(POLL_SECONDS)

    # What must never have happened

    def check_no_run_was_interrupted(self) -> None:
        """See that every workflow that began ran on one pod, and that none of its pods ended before it did."""
        ended = {event.pod for event in self.cluster.events(self.namespace) if event.event in {"ended", "killed"}}
        for run in self.runs():
            assert run.attempts <= 1, f"started again: {run}"
            assert run.status != "PENDING" or run.executor not in ended, f"its pod is gone: {run}"


def _from_pods(dsn: str) -> str:
    return dsn.replace(LOOPBACK, HOST)
