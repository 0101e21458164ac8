"""One policy at work: a namespace with an application of its own, that is fed and watched."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import TYPE_CHECKING

import httpx
import psycopg
from shop import APPLICATION, Shop

from cluster.api import has_condition
from harness.waiting import wait_until
from scaling.observed import Observation, Pod, Run
from scaling.policies import (
    COOLDOWN_SECONDS,
    DEPLOYMENT,
    POOL,
    QUEUE,
    WORKER_CONCURRENCY,
    Policy,
    database_authentication,
)
from scaling.worker import LAUNCHED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from cluster.api import Manifest
    from cluster.cluster import Cluster
    from scaling.loads import Job

SELECTOR = f"app.kubernetes.io/name={DEPLOYMENT}"
RUNS = """
SELECT created_at / 1000.0, started_at_epoch_ms / 1000.0, completed_at / 1000.0, coalesce(executor_id, ''),
       recovery_attempts::int
FROM dbos.workflow_status WHERE queue_name = %s ORDER BY created_at, workflow_uuid
"""


class Fleet:
    """The workers of one policy, their queue, and what scales them.

    Args:
        cluster: Where they run.
        policy: How they are scaled.
        namespace: Exists, and is theirs.
        dsn: A database with DBOS's tables, for them alone.
        window: The exporter's in_flight_window_seconds.
    """

    def __init__(self, cluster: Cluster, policy: Policy, namespace: str, dsn: str, window: float) -> None:
        self.policy, self.namespace = policy, namespace
        self._cluster, self._window = cluster, window
        self._shop = Shop(cluster, namespace, dsn)
        self._database = psycopg.connect(dsn, autocommit=True)
        self._made: dict[str, float] = {}
        self._replicas: list[tuple[float, int]] = []
        self._over: float | None = None
        self._is_stuck = False

    def install(self) -> None:
        """Install workers and what scales them, and wait until it does."""
        self._shop.register_queue(QUEUE, worker_concurrency=WORKER_CONCURRENCY)
        self._shop.deploy_workers(DEPLOYMENT, pods=self.policy.minimum, drain_seconds=self.policy.drain_seconds)
        values = self.policy.values(self._window)
        if self.policy.is_the_charts:
            self._shop.install(**values)
        else:
            unscaled = {POOL: {**values["pools"][POOL], "scaled": False}}
            self._shop.install(**{**values, "pools": unscaled})
            wanted = self.policy.scaled_object(self._shop.values(**values), self.namespace)
            self._cluster.kubectl.apply(database_authentication(self.namespace), wanted)
        path = f"/apis/keda.sh/v1alpha1/namespaces/{self.namespace}/scaledobjects/{POOL}"
        wait_until(
            lambda: has_condition(self._cluster.api.get(path), "Ready"),
            90,
            f"KEDA scales {self.namespace}",
            interval=0.5,
        )

    def feed(self, jobs: Sequence[Job], begin: float) -> None:
        """Enqueue each job at its moment."""
        for job in jobs:
            time.sleep(max(0.0, begin + job.at - time.time()))
            options = {"queue_name": QUEUE, "workflow_name": "job", "application_name": APPLICATION}
            self._shop.client.enqueue(options, job.seconds)  # type: ignore[arg-type]  # some of its options

    def look(self, deployment: Manifest, pods: Sequence[Manifest], jobs: int) -> None:
        """Take in what the cluster is like now.

        Args:
            deployment: The workers' own.
            pods: The workers' pods, those that go included.
            jobs: How many jobs there will be in all.
        """
        now = time.time()
        wanted = deployment["spec"]["replicas"]
        if not self._replicas or self._replicas[-1][1] != wanted:
            self._replicas.append((now, wanted))
        for pod in pods:
            self._made.setdefault(pod["metadata"]["name"], _seconds(pod["metadata"]["creationTimestamp"]))
        if self._over is None and not self._is_stuck:
            self._see_whether_it_is_over(now, pods, jobs)

    @property
    def is_through(self) -> bool:
        """Whether nothing is left to be done, and no pod left that will go."""
        return self._over is not None or self._is_stuck

    def observed(self, begin: float) -> Observation:
        """Return all that happened, as seconds since `begin`."""
        events = self._cluster.events(self.namespace)
        first: dict[tuple[str, str], float] = {}
        for event in events:
            first.setdefault((event.pod, event.event), event.time - begin)
        # A pod that ended before the load began came with the Deployment, and is none of the policy's.
        names = {pod for pod, event in first if event == "started" and pod.startswith(f"{DEPLOYMENT}-")}
        names -= {pod for (pod, event), at in first.items() if event == "gone" and at < 0}
        pods = [
            Pod(
                name=name,
                made=round(self._made.get(name, first[name, "started"] + begin) - begin, 2),
                started=round(first[name, "started"], 2),
                launched=self._launched(name, begin),
                ended=_rounded(first.get((name, "ended"), first.get((name, "killed")))),
                gone=_rounded(first.get((name, "gone"))),
            )
            for name in names
        ]
        return Observation(
            policy=self.policy.name,
            about=self.policy.about,
            over=None if self._over is None else round(self._over - begin, 2),
            runs=tuple(self._runs(begin)),
            pods=tuple(sorted(pods, key=lambda pod: pod.started)),
            failures=self._failures(begin),
            replicas=tuple((max(0.0, round(at - begin, 2)), count) for at, count in self._replicas),
        )

    def close(self) -> None:
        """Close the connections and remove the namespace."""
        self._shop.close()
        self._database.close()
        self._cluster.remove_namespace(self.namespace)

    def _runs(self, begin: float) -> list[Run]:
        return [
            Run(
                enqueued=round(float(enqueued) - begin, 2),
                started=_since(begin, started),
                ended=_since(begin, ended),
                pod=pod,
                attempts=attempts,
            )
            for enqueued, started, ended, pod, attempts in self._database.execute(RUNS, [QUEUE])
        ]

    def _see_whether_it_is_over(self, now: float, pods: Sequence[Manifest], jobs: int) -> None:
        alive = {pod["metadata"]["name"] for pod in pods}
        runs = self._runs(0)
        starts = [run.started for run in runs if run.started is not None]
        if len(runs) < jobs or len(starts) < jobs or any(run.ended is None and run.pod in alive for run in runs):
            return
        if len(pods) <= self.policy.minimum:
            self._over = now
        # A dead row that still counts, counts for ever.
        self._is_stuck = self._over is None and now > max(starts) + self._window + 2 * COOLDOWN_SECONDS

    def _failures(self, begin: float) -> int:
        return sum(_seconds(line.split()[0]) >= begin for line in self._shop.complaints_of_keda())

    def _launched(self, pod: str, begin: float) -> float | None:
        found = re.search(f"{LAUNCHED}([0-9.]+)", self._cluster.log(self.namespace, pod))
        return None if found is None else round(float(found[1]) - begin, 2)


def look_at_all(cluster: Cluster, fleets: Sequence[Fleet], jobs: int) -> None:
    """Let each fleet look, with two reads for all of them."""
    try:
        deployments = cluster.api.items("/apis/apps/v1/deployments", labelSelector=SELECTOR)
        pods = cluster.api.items("/api/v1/pods", labelSelector=SELECTOR)
    except httpx.HTTPError:  # a busy machine; the next look is a second away
        return
    by_namespace = {found["metadata"]["namespace"]: found for found in deployments}
    for fleet in fleets:
        own = [pod for pod in pods if pod["metadata"]["namespace"] == fleet.namespace]
        fleet.look(by_namespace[fleet.namespace], own, jobs)


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _since(begin: float, at: Decimal | None) -> float | None:
    return None if at is None else round(float(at) - begin, 2)


def _rounded(at: float | None) -> float | None:
    return None if at is None else round(at, 2)
