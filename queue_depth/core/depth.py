"""The numbers of one pool, or of one queue treated as a pool of its own."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from queue_depth.core.eligibility import Stranding, Takers
from queue_depth.core.limits import QueueLimits
from queue_depth.core.liveness import SHARED_EXECUTOR_IDS, Liveness
from queue_depth.core.pool import Pool
from queue_depth.core.replicas import beyond_tolerance, pods_for, wanted_for, why_not_scalable
from queue_depth.core.runnable import runnable, startable_in_partition
from queue_depth.core.table import PartitionGroup, RateLimitedStarts, Status, WorkflowGroup, is_internal
from queue_depth.core.versions import Pending, Versions, same_application


@dataclass(frozen=True, slots=True)
class QueueRows:
    """All that one read holds of one queue.

    Attributes:
        name: The queue's name.
        limits: Its limits; None where the queue is neither registered nor configured.
        waiting: Its rows that do not run: ENQUEUED and DELAYED.
        pending: Its PENDING rows.
        partitions: Its partitions with waiting rows.
        starts: Its starts within the rate limit period.
        unregistered_may_run: See `TableRead.unregistered_may_run`.
    """

    name: str
    limits: QueueLimits | None
    waiting: tuple[WorkflowGroup, ...] = ()
    pending: tuple[Pending, ...] = ()
    partitions: tuple[PartitionGroup, ...] = ()
    starts: tuple[RateLimitedStarts, ...] = ()
    unregistered_may_run: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """Running work, and who holds it.

    Attributes:
        executors: Ids of the executors that hold it.
        workflows: How many workflows.
        under_shared_ids: How many of them under an id that several processes may share.
        recoverable: Whether some more belongs to a dead executor and may still be recovered.
    """

    executors: frozenset[str | None]
    workflows: int
    under_shared_ids: int
    recoverable: bool


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """What one queue asks of a pool. Counts are workflows; `wanted` and `held` are pods.

    Attributes:
        queue_length: ENQUEUED rows.
        delayed: DELAYED rows whose time has not come.
        delayed_due: DELAYED rows whose time has come: backlog that nobody promotes at zero pods.
        running: Its PENDING rows that run, as far as can be known.
        runnable: Rows that could start now if there were pods.
        stranded: Waiting rows that nobody can take, by reason.
        oldest_ms: Since when the oldest waiting row has been waiting (epoch milliseconds); None: none waits.
        wanted: Pods that could run what can run; 0 when nothing can start.
        held: Pods that the running work fills at least.
        held_by_shared: The same, of what runs under shared ids.
        not_scalable: Why more pods cannot help; empty when they can.
    """

    queue_length: int
    delayed: int
    delayed_due: int
    running: Running
    runnable: int
    stranded: Mapping[Stranding, int]
    oldest_ms: int | None
    wanted: int
    held: int
    held_by_shared: int
    not_scalable: str

    @property
    def in_flight(self) -> int:
        """Its running workflows."""
        return self.running.workflows


@dataclass(frozen=True, slots=True)
class PoolDepth:
    """The numbers of a pool: sums over its queues for workflows, the maximum for pods.

    Attributes:
        busy_workers: Distinct executors of the pool with running work, on any queue or none.
        floor_replicas: Pods below which running work would be killed.
        wanted_replicas: Pods that could run everything that can run; 0 when nothing can start.
        oldest_ms: See `QueueDepth`.
        other_in_flight: Running work of its executors outside its queues.
        scalable: Whether more pods can help every queue of the pool.
        reason: Why they cannot; empty when they can.
        executor_ids_shared: Running work is held under an id that several processes share.
        worker_concurrency: The queue's limit per process, for a pool of one queue where it is known.
    """

    name: str
    queue_length: int
    in_flight: int
    runnable: int
    busy_workers: int
    floor_replicas: int
    wanted_replicas: int
    stranded: int
    oldest_ms: int | None
    other_in_flight: int
    delayed: int
    delayed_due: int
    scalable: bool
    reason: str
    executor_ids_shared: bool
    worker_concurrency: int | None


def queue_depth(rows: QueueRows, pool: Pool, versions: Versions) -> QueueDepth:
    """Count one queue for a pool."""
    limits = rows.limits or QueueLimits()
    if limits.application is None and pool.application is not None:
        # Nobody owns the queue, so rows of other applications are other pools' work, not stranded.
        rows = _of_application(rows, pool.application)
    application = pool.application or limits.application
    takers = Takers(_is_polled(rows), limits.application, application, pool.version, versions)
    mine = [group for group in rows.waiting if takers.concerns(group.application, group.version)]
    waiting, stranded = _waiting(mine, takers, partitioned=limits.partitioned)
    partitions = tuple(
        (
            group,
            startable_in_partition(
                group, limits, lambda waits: takers.why_stranded(waits.application, waits.version) is None, application
            ),
        )
        for group in rows.partitions
    )
    pending = [held for held in rows.pending if same_application(held.group.application, application)]
    startable = runnable(
        limits,
        waiting=waiting,
        pending=sum(held.group.count for held in pending),
        started=sum(starts.count for starts in rows.starts if same_application(starts.application, application)),
        partitions=partitions,
    )
    running = running_in(pool, pending)
    return QueueDepth(
        queue_length=_count(mine, Status.ENQUEUED, due=False),
        delayed=_count(mine, Status.DELAYED, due=False),
        delayed_due=_count(mine, Status.DELAYED, due=True),
        running=running,
        runnable=startable,
        stranded=stranded,
        oldest_ms=min((g.oldest_ms for g in mine if g.waits and g.oldest_ms is not None), default=None),
        wanted=wanted_for(
            limits, runnable=startable, in_flight=running.workflows, partitions=partitions, application=application
        ),
        held=pods_for(running.workflows, limits.worker_concurrency),
        held_by_shared=pods_for(running.under_shared_ids, limits.worker_concurrency),
        not_scalable=why_not_scalable(rows.limits, internal=is_internal(rows.name)),
    )


def running_in(pool: Pool, pending: Iterable[Pending]) -> Running:
    """What the pool's executors run of these rows."""
    executors: set[str | None] = set()
    workflows = under_shared_ids = 0
    recoverable = False
    for group, liveness, live in pending:
        if not _may_run_in(pool, group):
            continue
        if live:
            executors.add(group.executor)
            workflows += live
            if group.executor in SHARED_EXECUTOR_IDS:
                under_shared_ids += live
        recoverable = recoverable or (liveness is Liveness.DEAD and group.recent > 0)
    return Running(frozenset(executors), workflows, under_shared_ids, recoverable)


def pool_depth(pool: Pool, queues: Iterable[QueueRows], elsewhere: Running, versions: Versions) -> PoolDepth:
    """Count a pool.

    Args:
        pool: The pool.
        queues: The queues it serves.
        elsewhere: What its executors run outside those queues: queue-less work, and the internal queue's
            where that is not among them.
        versions: What the read says of versions.
    """
    served = {rows.name: rows for rows in queues}
    depths = {name: queue_depth(rows, pool, versions) for name, rows in served.items()}
    running = [elsewhere, *(depth.running for depth in depths.values())]
    executors = frozenset[str | None]().union(*(part.executors for part in running))
    shared = executors & SHARED_EXECUTOR_IDS
    named = len(executors) - len(shared)
    # Processes that share an id are as many as their work fills at least.
    sharing = max(int(bool(shared)), *(depth.held_by_shared for depth in depths.values()), 0)
    recoverable = any(part.recoverable for part in running)
    floor = max(named + sharing, int(recoverable), *(depth.held for depth in depths.values()), 0)
    startable = sum(depth.runnable for depth in depths.values())
    wanted = max((depth.wanted for depth in depths.values()), default=0)
    obstacles = _obstacles(pool, depths)
    return PoolDepth(
        name=pool.name,
        queue_length=sum(depth.queue_length for depth in depths.values()),
        in_flight=sum(depth.in_flight for depth in depths.values()),
        runnable=startable,
        busy_workers=named + bool(shared),
        floor_replicas=floor,
        wanted_replicas=beyond_tolerance(max(floor, wanted), floor, pool.hpa_tolerance) if startable else 0,
        stranded=sum(sum(depth.stranded.values()) for depth in depths.values()),
        oldest_ms=min((d.oldest_ms for d in depths.values() if d.oldest_ms is not None), default=None),
        other_in_flight=elsewhere.workflows,
        delayed=sum(depth.delayed for depth in depths.values()),
        delayed_due=sum(depth.delayed_due for depth in depths.values()),
        scalable=not obstacles,
        reason=_joined(obstacles),
        executor_ids_shared=bool(shared),
        worker_concurrency=_only_worker_concurrency(served.values()),
    )


def _waiting(
    groups: Iterable[WorkflowGroup], takers: Takers, *, partitioned: bool
) -> tuple[int, Mapping[Stranding, int]]:
    """Waiting rows that some pod would take, and the stranded ones by reason."""
    waiting = 0
    stranded: Counter[Stranding] = Counter()
    for group in groups:
        if not group.waits:
            continue
        reason = takers.why_stranded(group.application, group.version)
        keyless = group.count - group.keyed if partitioned else 0
        if reason is not None:
            stranded[reason] += group.count
        else:
            waiting += group.count - keyless
            stranded[Stranding.NO_PARTITION_KEY] += keyless
    return waiting, {reason: count for reason, count in stranded.items() if count}


def _may_run_in(pool: Pool, group: WorkflowGroup) -> bool:
    return pool.has_executor(group.executor) and (pool.version is None or group.version in {None, pool.version})


def _is_polled(rows: QueueRows) -> bool:
    """Whether any process polls the queue: it is registered, may live in code, or its work runs."""
    return (
        rows.limits is not None
        or is_internal(rows.name)
        or rows.unregistered_may_run
        or any(held.live for held in rows.pending)
    )


def _of_application(rows: QueueRows, application: str) -> QueueRows:
    return replace(
        rows,
        waiting=tuple(group for group in rows.waiting if same_application(group.application, application)),
        pending=tuple(held for held in rows.pending if same_application(held.group.application, application)),
    )


def _count(groups: Iterable[WorkflowGroup], status: Status, *, due: bool) -> int:
    return sum(group.count for group in groups if group.status is status and group.due is due)


def _only_worker_concurrency(queues: Iterable[QueueRows]) -> int | None:
    named = [rows for rows in queues if not is_internal(rows.name)]
    return named[0].limits.worker_concurrency if len(named) == 1 and named[0].limits else None


def _obstacles(pool: Pool, depths: Mapping[str, QueueDepth]) -> list[str]:
    """Why more pods cannot help, a text for each queue; the internal queue counts where it is asked for alone."""
    if pool.by_queue:
        return [depth.not_scalable for depth in depths.values() if depth.not_scalable]
    return [
        f"{name}: {depth.not_scalable}"
        for name, depth in sorted(depths.items())
        if depth.not_scalable and not is_internal(name)
    ]


def _joined(texts: list[str]) -> str:
    most = 3
    return "; ".join(texts[:most]) + (f"; and {len(texts) - most} more queues" if len(texts) > most else "")
