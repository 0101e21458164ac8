"""Every metric family: its name, labels and HELP text. The collector and the reference both read this table."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family.

    Attributes:
        name: As it stands in queries.
        type: Its Prometheus type.
        labels: Label names, in order.
        help: The HELP text: one sentence, with the unit where the name does not say it.
        folding: What becomes of the values that share `_other` (see `labels`); empty where it cannot happen.
        note: When the series is absent, or what it must not be used for; for the reference only.
    """

    name: str
    type: Literal["gauge", "counter", "histogram", "info"]
    labels: tuple[str, ...]
    help: str
    folding: Literal["", "sum", "earliest", "left out"] = ""
    note: str = ""


WORKFLOWS = Family(
    "dbos_queue_workflows",
    "gauge",
    ("queue", "application", "version", "status"),
    "Unfinished workflows by status: ENQUEUED, PENDING (on dead executors too) or DELAYED.",
    "sum",
    "Absent for a combination without rows; a label is empty where the row has none.",
)
RUNNABLE = Family(
    "dbos_queue_runnable_workflows",
    "gauge",
    ("queue",),
    "Waiting workflows that could start now if there were workers, within every concurrency and rate limit.",
    "sum",
)
STRANDED = Family(
    "dbos_queue_stranded_workflows",
    "gauge",
    ("queue", "reason"),
    "Waiting workflows that no worker can take, by reason.",
    "sum",
    "Every queue has a series for every reason, 0 included.",
)
IN_FLIGHT = Family(
    "dbos_queue_in_flight_workflows",
    "gauge",
    ("queue",),
    "PENDING workflows on live executors, or dequeued within the in-flight window where liveness is unknown.",
    "sum",
)
OLDEST = Family(
    "dbos_queue_oldest_enqueued_timestamp_seconds",
    "gauge",
    ("queue",),
    "Since when the oldest waiting workflow has been waiting, unix time by the database's clock.",
    "earliest",
    "Absent when none waits.",
)
CONCURRENCY = Family(
    "dbos_queue_concurrency_limit",
    "gauge",
    ("queue",),
    "Workflows of the queue that may run at once over all workers.",
    "left out",
    "Absent when the queue has no such limit.",
)
WORKER_CONCURRENCY = Family(
    "dbos_queue_worker_concurrency_limit",
    "gauge",
    ("queue",),
    "Workflows of the queue that may run at once in one worker.",
    "left out",
    "Absent when the queue has no such limit.",
)
FLOOR = Family(
    "dbos_pool_floor_replicas",
    "gauge",
    ("pool",),
    "The fewest workers that hold all running work of the pool.",
    "left out",
)
WANTED = Family(
    "dbos_pool_wanted_replicas",
    "gauge",
    ("pool",),
    "Workers that running and runnable work of the pool can use together; 0 while nothing can start.",
    "left out",
)
BUSY = Family(
    "dbos_pool_busy_workers",
    "gauge",
    ("pool",),
    "Distinct executors of the pool that hold running work.",
    "left out",
    "A lower bound where several workers share one executor id.",
)
UP = Family(
    "queue_depth_up",
    "gauge",
    (),
    "1 while there are numbers young enough to serve, else 0 and no dbos_ series.",
)
REFRESH_DURATION = Family(
    "queue_depth_refresh_duration_seconds",
    "histogram",
    (),
    "Duration of successful refreshes, from the query to the published numbers.",
)
REFRESHES = Family(
    "queue_depth_refreshes_total",
    "counter",
    ("outcome",),
    "Refreshes by outcome: success, or what failed.",
    note="Every outcome has a series from the start.",
)
LAST_SUCCESS = Family(
    "queue_depth_last_success_timestamp_seconds",
    "gauge",
    (),
    "When a refresh last succeeded, unix time by the exporter's clock.",
    note="Absent before the first.",
)
LAST_ATTEMPT = Family(
    "queue_depth_last_attempt_timestamp_seconds",
    "gauge",
    (),
    "When a refresh last began, unix time by the exporter's clock.",
    note="Absent before the first.",
)
FOLDED = Family(
    "queue_depth_folded_label_values",
    "gauge",
    ("label",),
    "Values of a label beyond the limit, which share the value _other.",
)
HTTP_REQUESTS = Family(
    "queue_depth_http_requests_total",
    "counter",
    ("route", "code"),
    "HTTP requests by route template and status code.",
    note="Every unknown path counts under the route `other`.",
)
BUILD_INFO = Family(
    "queue_depth_build_info",
    "info",
    ("version", "python"),
    "The versions of queue-depth and of Python, always 1.",
)

DEPTH_FAMILIES = (
    WORKFLOWS,
    RUNNABLE,
    STRANDED,
    IN_FLIGHT,
    OLDEST,
    CONCURRENCY,
    WORKER_CONCURRENCY,
    FLOOR,
    WANTED,
    BUSY,
    FOLDED,
)
"""Present only while the snapshot is fresh."""

OWN_FAMILIES = (
    UP,
    REFRESH_DURATION,
    REFRESHES,
    LAST_SUCCESS,
    LAST_ATTEMPT,
    HTTP_REQUESTS,
    BUILD_INFO,
)
"""About the exporter itself, always present."""
