"""From workflows to pods."""

from collections.abc import Iterable

from queue_depth.core.limits import QueueLimits
from queue_depth.core.runnable import used_by
from queue_depth.core.table import PartitionGroup


def pods_for(workflows: int, worker_concurrency: int | None) -> int:
    """Pods that hold so many workflows of one queue; one, if any, where a process takes all it can get."""
    if workflows <= 0:
        return 0
    return -(-workflows // worker_concurrency) if worker_concurrency else 1


def wanted_for(
    limits: QueueLimits,
    *,
    runnable: int,
    in_flight: int,
    partitions: Iterable[tuple[PartitionGroup, int]],
    application: str | None,
) -> int:
    """Pods that could run everything of a queue that can run, 0 when nothing can start.

    Work in flight alone asks for nothing. What limits over all executors forbid is not in `runnable` already.
    A limit per process and partition (PW) asks for as many pods as the fullest partition needs.
    """
    if runnable <= 0:
        return 0
    wanted = pods_for(runnable + in_flight, limits.worker_concurrency)
    if limits.partition_worker_concurrency:
        # A partition gets no more than the queue may start, and no more of its rows run than the queue's.
        fullest = max(
            (
                min(startable, runnable) + min(used_by(application, group.pending), in_flight)
                for group, startable in partitions
                if startable
            ),
            default=1,
        )
        wanted = max(wanted, pods_for(fullest, limits.partition_worker_concurrency))
    return wanted


def beyond_tolerance(wanted: int, floor: int, tolerance: float) -> int:
    """Enough pods that an HPA with this tolerance acts: it keeps n pods while they are wanted to be n (1 + tolerance).

    All pods are taken to be busy, so that their number is the floor: had some been idle, they would have taken what
    waits. With the HPA's default of 0.1, ten full pods and one workflow that waits want twelve, not eleven.
    """
    if not tolerance or wanted <= floor:
        return wanted
    rounding = 1e-9  # 100 * 1.15 is a little below 115
    return max(wanted, int(floor * (1 + tolerance) + rounding) + 1)


def why_not_scalable(limits: QueueLimits | None, *, internal: bool) -> str:
    """Why more pods cannot help this queue, with the mend; empty when they can."""
    if internal:
        return "the internal queue has no limits: the first pod takes all of its work"
    if limits is None:
        return (
            "the queue is not registered, so its worker_concurrency is unknown: "
            "register it, or set it under queues.<name> in the configuration"
        )
    if limits.worker_concurrency is None and limits.partition_worker_concurrency is None:
        return "worker_concurrency is not set: the first pod takes every workflow that may start; set it on the queue"
    if limits.worker_concurrency == 0 or limits.partition_worker_concurrency == 0:
        return "worker_concurrency is 0: no process takes work from this queue"
    return ""
