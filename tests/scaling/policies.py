"""The ways to scale that are compared.

Each begins with the ScaledObject that the chart makes and says what differs. A new policy is a row of `POLICIES`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.helm import one, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.helm import Manifest

QUEUE = "jobs"
POOL = "jobs"
DEPLOYMENT = "worker"
DATABASE_SECRET = "queue-depth-database"

WORKER_CONCURRENCY = 4
MAX_PODS = 8
SLOTS = WORKER_CONCURRENCY * MAX_PODS

POLLING_SECONDS = 5
SYNC_SECONDS = 15
REFRESH_SECONDS = 5

# Both are 300 s in the chart. The loads last minutes where a day's would last hours, so these are as much shorter.
COOLDOWN_SECONDS = 30
STABILIZATION_SECONDS = 30

POOL_DEFAULTS: dict[str, Any] = {
    "pollingInterval": POLLING_SECONDS,
    "cooldownPeriod": COOLDOWN_SECONDS,
    "maxReplicaCount": MAX_PODS,
    "scaleIn": {"stabilizationWindowSeconds": STABILIZATION_SECONDS},
}

Trigger = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to scale.

    Attributes:
        name: Part of its namespaces' names.
        about: What it is, in words.
        pool: Values of the chart for its pool.
        triggers: In place of those that the chart makes; an empty URL becomes the pool's.
        formula: KEDA's, over the triggers' names; target and activation are those of the triggers.
        minimum: Fewest pods.
        drain_seconds: How long a worker that is told to go may finish what it runs. 0: it ends at once.
    """

    name: str
    about: str
    pool: Mapping[str, Any] = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
    formula: str = ""
    minimum: int = 0
    drain_seconds: int = 0

    @property
    def is_the_charts(self) -> bool:
        """Whether the chart installs the ScaledObject itself."""
        return not self.triggers

    def values(self, window: float) -> dict[str, Any]:
        """Return the values of the chart that matter here.

        Args:
            window: The exporter's in_flight_window_seconds.
        """
        pool = {"queues": [QUEUE], "target": {"name": DEPLOYMENT}, "minReplicaCount": self.minimum, **self.pool}
        return {
            "fullnameOverride": "exporter",
            "config": {"in_flight_window_seconds": window},
            "poolDefaults": POOL_DEFAULTS,
            "pools": {POOL: pool},
        }

    def scaled_object(self, values: Mapping[str, Any], namespace: str) -> Manifest:
        """Return the chart's ScaledObject, with the triggers of this policy where it has its own.

        Args:
            values: All values of the chart.
            namespace: Where it goes.
        """
        made = one(render(values, f"--namespace={namespace}"), "ScaledObject")
        spec = made["spec"]
        url = spec["triggers"][0]["metadata"]["url"]
        if self.triggers:
            spec["triggers"] = copy.deepcopy(list(self.triggers))
        for trigger in spec["triggers"]:
            if "url" in trigger["metadata"]:
                trigger["metadata"]["url"] = url
        if self.formula:
            spec["advanced"]["scalingModifiers"] = {
                "formula": self.formula,
                "target": str(WORKER_CONCURRENCY),
                "activationTarget": "0",
                "metricType": "AverageValue",
            }
        return made


def _reads(field_name: str) -> Trigger:
    return {
        "type": "metrics-api",
        "name": field_name,
        "metricType": "AverageValue",
        "metadata": {
            "url": "",
            "valueLocation": field_name,
            "targetValue": str(WORKER_CONCURRENCY),
            "activationTargetValue": "0",
        },
    }


COUNT = f"SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') AND queue_name = '{QUEUE}'"

CHART = "queue-depth"

POLICIES = (
    Policy(
        "enqueued-only",
        "`queue_length` with target W, as DBOS documents it. One pod at least, as DBOS documents it too: "
        "there the metric comes from the application itself.",
        triggers=(_reads("queue_length"),),
        minimum=1,
    ),
    Policy(
        "enqueued-pending",
        "`queue_length + in_flight` as one number (KEDA's scalingModifiers) with target W.",
        triggers=(_reads("queue_length"), _reads("in_flight")),
        formula="queue_length + in_flight",
    ),
    Policy(
        "raw",
        "`queue_length` and `in_flight` as two triggers with target W: the chart's `mode: raw`.",
        pool={"mode": "raw", "workerConcurrency": WORKER_CONCURRENCY},
    ),
    Policy(
        "postgresql",
        f"KEDA's postgresql scaler with target W, no exporter: `{COUNT}`.",
        triggers=(
            {
                "type": "postgresql",
                "name": "unfinished",
                "metricType": "AverageValue",
                "metadata": {
                    "query": COUNT,
                    "targetQueryValue": str(WORKER_CONCURRENCY),
                    "activationTargetQueryValue": "0",
                },
                "authenticationRef": {"name": DATABASE_SECRET},
            },
        ),
    ),
    Policy(CHART, "`wanted_replicas` and `floor_replicas` with target 1: this chart as it is."),
)


def database_authentication(namespace: str) -> Manifest:
    """Return what KEDA's postgresql scaler finds the database by."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": {"name": DATABASE_SECRET, "namespace": namespace},
        "spec": {"secretTargetRef": [{"parameter": "connection", "name": DATABASE_SECRET, "key": "database-url"}]},
    }
