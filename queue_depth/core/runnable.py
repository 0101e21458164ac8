"""How many waiting workflows DBOS would start now if there were pods (dequeue of DBOS Python 3.4)."""

from collections.abc import Callable, Iterable

from queue_depth.core.limits import QueueLimits
from queue_depth.core.table import PartitionGroup, UsedRows, WaitingRows
from queue_depth.core.versions import same_application

UNLIMITED = 2**62
"""Stands for an absent limit."""


def room(limit: int | None, used: int) -> int:
    """What a limit leaves. A limit already exceeded leaves nothing, never less."""
    return UNLIMITED if limit is None else max(0, limit - used)


def used_by(application: str | None, rows: Iterable[UsedRows]) -> int:
    """How many of the rows DBOS counts against a limit of this application's (None: any) workers."""
    return sum(used.count for used in rows if same_application(used.application, application))


def startable_in_partition(
    group: PartitionGroup, limits: QueueLimits, takes: Callable[[WaitingRows], bool], application: str | None
) -> int:
    """How many rows of one such partition could start: min(E_k, PC - P_k, PL - S_k).

    Args:
        group: Partitions that look alike.
        limits: The queue's limits.
        takes: Whether some pod would take such rows.
        application: The application of those pods; None: any.
    """
    waiting = sum(rows.count for rows in group.waiting if takes(rows))
    rate = limits.partition_rate_limit
    pending = used_by(None if _sweeps(limits) else application, group.pending)
    return min(
        waiting,
        room(limits.partition_concurrency, pending),
        room(rate.limit if rate else None, used_by(application, group.started)),
    )


def _sweeps(limits: QueueLimits) -> bool:
    """Whether DBOS takes one row of each partition without a running row in a single statement.

    That statement looks for a running row of any application, where all other counts are of the worker's own.
    """
    return (
        limits.partition_concurrency == 1
        and limits.concurrency is None
        and limits.rate_limit is None
        and limits.partition_rate_limit is None
    )


def runnable(
    limits: QueueLimits,
    *,
    waiting: int,
    pending: int,
    started: int,
    partitions: Iterable[tuple[PartitionGroup, int]],
) -> int:
    """Rows of a queue that could start now.

    Unpartitioned: min(E, G - P, L - S). Partitioned: min(sum over partitions, G - P, L - S).

    Args:
        limits: The queue's limits.
        waiting: E, rows that some pod would take.
        pending: P, PENDING rows on every executor, dead ones too, as DBOS counts them.
        started: S, starts within the rate limit period.
        partitions: Partitions that look alike, and what could start in one of them.
    """
    if limits.worker_concurrency == 0 or limits.partition_worker_concurrency == 0:
        return 0
    eligible = sum(startable * group.partitions for group, startable in partitions) if limits.partitioned else waiting
    rate = limits.rate_limit
    return min(eligible, room(limits.concurrency, pending), room(rate.limit if rate else None, started))
