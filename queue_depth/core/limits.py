"""A queue's limits: what DBOS's `queues` table says, corrected by the exporter's own configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `limit` starts in any `period_seconds`."""

    limit: int
    period_seconds: float


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A row of DBOS's `queues` table; columns that the schema lacks are None or False.

    `partition_queue` is the flag that SDKs read differently, see `resolve`.
    """

    name: str
    application: str | None = None
    concurrency: int | None = None
    worker_concurrency: int | None = None
    rate_limit: RateLimit | None = None
    partition_queue: bool = False
    partition_concurrency: int | None = None
    partition_worker_concurrency: int | None = None
    partition_rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True)
class QueueOverride:
    """What the exporter's configuration says of a queue; only the names in `given` count.

    For queues declared in code, which have no row or hide it. `None` under a given name means "no such limit".

    Attributes:
        given: Names of the fields below that the configuration sets.
        partitioned: Whether workers treat the queue as partitioned; settles what `partition_queue` leaves open.
    """

    given: frozenset[str] = frozenset()
    concurrency: int | None = None
    worker_concurrency: int | None = None
    rate_limit: RateLimit | None = None
    partitioned: bool | None = None
    partition_concurrency: int | None = None
    partition_worker_concurrency: int | None = None
    partition_rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits that workers of a queue obey. None means that there is no such limit.

    Attributes:
        application: The application that owns the queue; None: any.
        concurrency: G, PENDING rows of the whole queue, over all executors.
        worker_concurrency: W, running workflows of the queue in one process.
        rate_limit: L starts in T seconds, over all executors.
        partitioned: Whether workers visit the queue partition by partition.
        partition_concurrency: PC, PENDING rows of one partition, over all executors.
        partition_worker_concurrency: PW, running workflows of one partition in one process.
        partition_rate_limit: PL starts in T seconds for each partition.
        doubt: What could not be settled about this queue, with the mend; empty when nothing.
    """

    application: str | None = None
    concurrency: int | None = None
    worker_concurrency: int | None = None
    rate_limit: RateLimit | None = None
    partitioned: bool = False
    partition_concurrency: int | None = None
    partition_worker_concurrency: int | None = None
    partition_rate_limit: RateLimit | None = None
    doubt: str = field(default="", compare=False)


_LIMITS = (
    "concurrency",
    "worker_concurrency",
    "rate_limit",
    "partition_concurrency",
    "partition_worker_concurrency",
    "partition_rate_limit",
)


def resolve(row: QueueRow, override: QueueOverride, *, partition_columns: bool) -> QueueLimits:
    """Decide which limits workers obey.

    `partition_queue = TRUE` without any `partition_*` limit means "all limits per partition" to Go, Java,
    Python 2.2 to 2.30 and TypeScript 4, and nothing to Python 3 and TypeScript 5. It is honoured unless the
    configuration says otherwise: taking it for unpartitioned could leave work waiting that can run.

    Args:
        row: The queue's row, or an empty one under the queue's name.
        override: The configuration's word on this queue.
        partition_columns: Whether the schema has `queues.partition_concurrency` and its siblings, that is,
            whether SDKs that ignore the flag may be at work.
    """
    chosen = {name: getattr(override if name in override.given else row, name) for name in _LIMITS}
    limits = QueueLimits(application=row.application, **chosen)
    by_partition = (
        limits.partition_concurrency,
        limits.partition_worker_concurrency,
        limits.partition_rate_limit,
    )
    if override.partitioned is False:
        return replace(limits, partition_concurrency=None, partition_worker_concurrency=None, partition_rate_limit=None)
    if any(limit is not None for limit in by_partition):
        return replace(limits, partitioned=True)
    if not (override.partitioned or row.partition_queue):
        return limits
    doubt = ""
    if override.partitioned is None and partition_columns:
        doubt = (
            "partition_queue is TRUE without any partition limit: Go and Java workers apply its limits to each "
            "partition, Python 3 and TypeScript 5 workers to the whole queue; taken as the former, "
            "set queues.<name>.partitioned in the configuration to settle it"
        )
    return QueueLimits(
        application=limits.application,
        partitioned=True,
        partition_concurrency=limits.concurrency,
        partition_worker_concurrency=limits.worker_concurrency,
        partition_rate_limit=limits.rate_limit,
        doubt=doubt,
    )


def resolve_all(
    rows: Iterable[QueueRow], overrides: Mapping[str, QueueOverride], *, partition_columns: bool
) -> dict[str, QueueLimits]:
    """Limits of every queue that is registered in the database or named in the configuration."""
    by_name = {row.name: row for row in rows}
    return {
        name: resolve(
            by_name.get(name, QueueRow(name)),
            overrides.get(name, QueueOverride()),
            partition_columns=partition_columns,
        )
        for name in [*by_name, *(name for name in overrides if name not in by_name)]
    }
