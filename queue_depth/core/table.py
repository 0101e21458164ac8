"""What one refresh reads from DBOS's tables, already grouped by the database.

Nothing here is a decision: the rows are counted by what they have in common, and `limits`,
`eligibility`, `runnable` and `depth` say what the counts mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from queue_depth.core.limits import QueueLimits

INTERNAL_QUEUE = "_dbos_internal_queue"
"""The queue that every DBOS process serves without limits: resumed, forked, scheduled and recovered work."""


def is_internal(queue: str) -> bool:
    """Whether an SDK made the queue for itself (also Kafka's).

    Such queues have no row in `queues`, and processes poll them whatever queues they listen to. The prefix is
    reserved by DBOS Python 3 and TypeScript 5.
    """
    return queue.startswith("_dbos_")


class Status(StrEnum):
    """The statuses of unfinished work; a row in any other status is never read."""

    ENQUEUED = "ENQUEUED"
    PENDING = "PENDING"
    DELAYED = "DELAYED"


@dataclass(frozen=True, slots=True)
class WorkflowGroup:
    """Rows of `workflow_status` that share queue, status, application, version and executor.

    Attributes:
        queue: The queue's name; None for work started directly (NULL, or '' as older Go SDKs write it).
        status: ENQUEUED, PENDING or DELAYED.
        application: `application_name`; None where the row or the schema has none.
        version: `application_version`; None where the row has none.
        executor: `executor_id` of PENDING rows. It means nothing on a waiting row: there it is the enqueuer.
        due: For DELAYED rows, whether their time has come by the database's clock; else False.
        count: Rows in the group.
        keyed: Rows with a partition key.
        recent: PENDING rows dequeued within the in-flight window.
        oldest_ms: For waiting rows, since when the oldest has been waiting (epoch milliseconds).
    """

    queue: str | None
    status: Status
    application: str | None
    version: str | None
    executor: str | None
    due: bool
    count: int
    keyed: int
    recent: int
    oldest_ms: int | None

    @property
    def waits(self) -> bool:
        """Whether a worker would start these rows now: ENQUEUED, or DELAYED and due.

        DBOS promotes due DELAYED rows from a live process only, so at zero pods they stay DELAYED.
        """
        return self.status is Status.ENQUEUED or self.due


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Waiting rows of one partition that share application and version."""

    application: str | None
    version: str | None
    count: int


@dataclass(frozen=True, slots=True)
class UsedRows:
    """Rows of one partition, of one application, that use up a limit: PENDING ones, or recent starts."""

    application: str | None
    count: int


@dataclass(frozen=True, slots=True)
class PartitionGroup:
    """Partitions of one queue that look alike: the same waiting rows, running rows and recent starts.

    Grouping by looks keeps a refresh small when a queue has a partition per customer.

    Attributes:
        queue: The queue's name.
        waiting: What waits in each of these partitions (ENQUEUED and due DELAYED rows).
        pending: PENDING rows in each, of any version and executor, dead ones too: DBOS counts them all.
        started: Rows in each that were started within the partition's rate limit period.
        partitions: How many partitions look like this.
    """

    queue: str
    waiting: tuple[WaitingRows, ...]
    pending: tuple[UsedRows, ...]
    started: tuple[UsedRows, ...]
    partitions: int


@dataclass(frozen=True, slots=True)
class RateLimitedStarts:
    """How many workflows of a queue were started within its rate limit period."""

    queue: str
    application: str | None
    count: int


@dataclass(frozen=True, slots=True)
class LatestVersion:
    """The newest row of `application_versions` for one owner (None: rows without an application name)."""

    application: str | None
    version: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class SchemaNote:
    """Something this DBOS schema lacks, and the number that is less exact for it."""

    missing: str
    effect: str

    def __str__(self) -> str:
        """One sentence for logs, `/readyz?verbose` and `check`."""
        return f"{self.missing}: {self.effect}"


@dataclass(frozen=True, slots=True)
class TableRead:
    """One consistent read of DBOS's tables.

    Attributes:
        observed_at_ms: The database's clock at the read, minus replication lag (epoch milliseconds).
        lag_seconds: How far the database was behind its primary; 0 on a primary.
        groups: Every unfinished row, grouped.
        partitions: Partitions with waiting rows, for partitioned queues only.
        starts: Recent starts, for queues with a rate limit only.
        limits: Limits of every registered or configured queue.
        latest_versions: At most one row per application.
        unregistered_may_run: Whether this schema may belong to an SDK whose queues live in code only
            (DBOS Python before 3.0, TypeScript before 5), so that a queue without a row is no mistake.
        notes: What the schema lacks.
    """

    observed_at_ms: int
    lag_seconds: float
    groups: tuple[WorkflowGroup, ...]
    partitions: tuple[PartitionGroup, ...]
    starts: tuple[RateLimitedStarts, ...]
    limits: Mapping[str, QueueLimits]
    latest_versions: tuple[LatestVersion, ...]
    unregistered_may_run: bool
    notes: tuple[SchemaNote, ...]
