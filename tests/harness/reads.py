"""Hand-made reads: what the reader would have found in a table that nobody had to fill."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queue_depth.core.limits import QueueLimits
from queue_depth.core.table import (
    LatestVersion,
    PartitionGroup,
    RateLimitedStarts,
    SchemaNote,
    Status,
    TableRead,
    UsedRows,
    WaitingRows,
    WorkflowGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OBSERVED_AT_MS = 1_800_000_000_000
WAITING_SINCE_MS = OBSERVED_AT_MS - 60_000
NO_LIMITS = QueueLimits()


def group(
    queue: str | None = "q",
    status: Status = Status.ENQUEUED,
    count: int = 1,
    *,
    application: str | None = None,
    version: str | None = None,
    executor: str | None = None,
    due: bool = False,
    keyed: int = 0,
    recent: int | None = None,
    oldest_ms: int | None = None,
) -> WorkflowGroup:
    """Return a group; PENDING rows are recent, and waiting ones wait for a minute, unless said otherwise."""
    waits = status is Status.ENQUEUED or due
    return WorkflowGroup(
        queue=queue,
        status=status,
        application=application,
        version=version,
        executor=executor,
        due=due,
        count=count,
        keyed=keyed,
        recent=recent if recent is not None else count * (status is Status.PENDING),
        oldest_ms=oldest_ms if oldest_ms is not None or not waits else WAITING_SINCE_MS,
    )


def enqueued(
    count: int = 1,
    queue: str | None = "q",
    *,
    application: str | None = None,
    version: str | None = None,
    executor: str | None = None,
    keyed: int = 0,
    oldest_ms: int | None = None,
) -> WorkflowGroup:
    """Return ENQUEUED rows.

    Args:
        executor: The enqueuer, which says nothing about who will run them.
    """
    return group(
        queue,
        Status.ENQUEUED,
        count,
        application=application,
        version=version,
        executor=executor,
        keyed=keyed,
        oldest_ms=oldest_ms,
    )


def pending(
    count: int = 1,
    queue: str | None = "q",
    *,
    executor: str | None = "pod-1",
    application: str | None = None,
    version: str | None = None,
    keyed: int = 0,
    recent: int | None = None,
) -> WorkflowGroup:
    """Return PENDING rows of one executor, all dequeued within the window unless `recent` says how many."""
    return group(
        queue,
        Status.PENDING,
        count,
        application=application,
        version=version,
        executor=executor,
        keyed=keyed,
        recent=recent,
    )


def delayed(
    count: int = 1, queue: str | None = "q", *, due: bool, version: str | None = None, keyed: int = 0
) -> WorkflowGroup:
    """Return DELAYED rows whose time has come, or not."""
    return group(queue, Status.DELAYED, count, due=due, version=version, keyed=keyed)


def waiting(count: int, *, application: str | None = None, version: str | None = None) -> WaitingRows:
    """Return what waits in one partition."""
    return WaitingRows(application=application, version=version, count=count)


def partition(
    rows: int | tuple[WaitingRows, ...],
    queue: str = "q",
    *,
    pending: int | Mapping[str | None, int] = 0,
    started: int | Mapping[str | None, int] = 0,
    partitions: int = 1,
) -> PartitionGroup:
    """Return partitions that look alike; `pending` and `started` may be by application."""
    held = (waiting(rows),) if isinstance(rows, int) else rows
    return PartitionGroup(
        queue=queue, waiting=held, pending=_used(pending), started=_used(started), partitions=partitions
    )


def _used(rows: int | Mapping[str | None, int]) -> tuple[UsedRows, ...]:
    by_application = {None: rows} if isinstance(rows, int) else rows
    return tuple(UsedRows(application, count) for application, count in by_application.items() if count)


def latest(version: str, application: str | None = None, timestamp_ms: int = OBSERVED_AT_MS) -> LatestVersion:
    """Return the newest version row of one owner."""
    return LatestVersion(application=application, version=version, timestamp_ms=timestamp_ms)


def read(
    *groups: WorkflowGroup,
    limits: Mapping[str, QueueLimits] | QueueLimits | None = None,
    partitions: Iterable[PartitionGroup] = (),
    starts: Iterable[RateLimitedStarts] = (),
    latest_versions: Iterable[LatestVersion] = (),
    unregistered_may_run: bool = False,
    observed_at_ms: int = OBSERVED_AT_MS,
    lag_seconds: float = 0.0,
    notes: Iterable[SchemaNote] = (),
) -> TableRead:
    """Return a read; `limits` alone are those of the queue `q`, and by default it is registered without any.

    Give `limits={}` for a database where no queue is registered.
    """
    by_queue = {"q": NO_LIMITS} if limits is None else {"q": limits} if isinstance(limits, QueueLimits) else limits
    return TableRead(
        observed_at_ms=observed_at_ms,
        lag_seconds=lag_seconds,
        groups=groups,
        partitions=tuple(partitions),
        starts=tuple(starts),
        limits=by_queue,
        latest_versions=tuple(latest_versions),
        unregistered_may_run=unregistered_may_run,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class Workflow:
    """One row of `workflow_status`, as far as the exporter cares.

    Attributes:
        queue: `queue_name`.
        status: None once it has finished.
        application: `application_name`.
        version: `application_version`.
        executor: `executor_id`.
        key: `queue_partition_key`.
        due: Whether a DELAYED row's time has come.
        recent: Whether a PENDING row was dequeued within the in-flight window.
        started: Whether it was started within the rate limit period of its queue.
    """

    queue: str | None = "q"
    status: Status | None = Status.ENQUEUED
    application: str | None = None
    version: str | None = None
    executor: str | None = None
    key: str | None = None
    due: bool = False
    recent: bool = False
    started: bool = False

    @property
    def waits(self) -> bool:
        """Whether a worker would start it now."""
        return self.status is Status.ENQUEUED or (self.status is Status.DELAYED and self.due)


def read_of(
    workflows: Iterable[Workflow],
    limits: Mapping[str, QueueLimits],
    *,
    latest_versions: Iterable[LatestVersion] = (),
    unregistered_may_run: bool = False,
) -> TableRead:
    """Return what the reader would have read of these rows."""
    workflows = tuple(workflows)
    return read(
        *_grouped(workflows),
        limits=limits,
        partitions=[
            found
            for name, queue_limits in limits.items()
            if queue_limits.partitioned
            for found in _partitions_of(name, [w for w in workflows if w.queue == name])
        ],
        starts=[
            RateLimitedStarts(queue=queue, application=application, count=count)
            for (queue, application), count in Counter(
                (w.queue, w.application) for w in workflows if w.started and w.queue is not None
            ).items()
            if queue in limits and limits[queue].rate_limit is not None
        ],
        latest_versions=latest_versions,
        unregistered_may_run=unregistered_may_run,
    )


def _grouped(workflows: Iterable[Workflow]) -> list[WorkflowGroup]:
    alike: dict[tuple[str | None, Status, str | None, str | None, str | None, bool], list[Workflow]]
    alike = defaultdict(list)
    for w in workflows:
        if w.status is not None:
            due = w.due and w.status is Status.DELAYED
            executor = w.executor if w.status is Status.PENDING else None
            alike[w.queue, w.status, w.application, w.version, executor, due].append(w)
    return [
        group(
            queue,
            status,
            len(rows),
            application=application,
            version=version,
            executor=executor,
            due=due,
            keyed=sum(w.key is not None for w in rows),
            recent=sum(w.recent for w in rows) if status is Status.PENDING else 0,
        )
        for (queue, status, application, version, executor, due), rows in alike.items()
    ]


def _partitions_of(queue: str, workflows: list[Workflow]) -> list[PartitionGroup]:
    keys = {w.key for w in workflows if w.waits and w.key is not None}
    looks: Counter[tuple[tuple[WaitingRows, ...], tuple[UsedRows, ...], tuple[UsedRows, ...]]] = Counter()
    for key in keys:
        rows = [w for w in workflows if w.key == key]
        counts = Counter((w.application, w.version) for w in rows if w.waits)
        held = tuple(
            waiting(count, application=application, version=version)
            for (application, version), count in sorted(counts.items(), key=repr)
        )
        running = Counter(w.application for w in rows if w.status is Status.PENDING)
        started = Counter(w.application for w in rows if w.started)
        looks[held, _used(running), _used(started)] += 1
    return [
        PartitionGroup(queue=queue, waiting=held, pending=pending_rows, started=started_rows, partitions=count)
        for (held, pending_rows, started_rows), count in looks.items()
    ]
