"""What an operator should mend, said of a snapshot: the same in `check` and in `/readyz?verbose`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from queue_depth.core.eligibility import Stranding
from queue_depth.core.liveness import SHARED_EXECUTOR_IDS
from queue_depth.core.pool import Pool
from queue_depth.core.replicas import why_not_scalable
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE, Status, is_internal
from queue_depth.core.versions import same_application


class Topic(StrEnum):
    """What a piece of advice is about."""

    DOUBT = "in doubt"
    SHARED_IDS = "executor ids shared, set DBOS__VMID to the pod's name"
    NOT_SCALABLE = "not scalable"
    STRANDED = "stranded"
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to mend; `text` names the queue or pool, in quotes."""

    topic: Topic
    text: str


def advice(snapshot: Snapshot) -> Iterator[Advice]:
    """Everything that makes a number less exact, or that looks like a mistake. There may be one for each queue."""
    read = snapshot.read
    for name, limits in sorted(read.limits.items()):
        if limits.doubt:
            yield Advice(Topic.DOUBT, f"{quoted(name)}: {limits.doubt}")
    sharing = {g.queue for g in read.groups if g.status is Status.PENDING and g.executor in SHARED_EXECUTOR_IDS}
    for queue in sorted(sharing, key=lambda name: (name is None, name or "")):
        yield Advice(Topic.SHARED_IDS, "work without a queue" if queue is None else quoted(queue))
    with_rows = {group.queue for group in read.groups}
    for name in snapshot.queues:
        obstacle = why_not_scalable(read.limits.get(name), internal=False)
        if obstacle and not is_internal(name) and (name in read.limits or name in with_rows):
            yield Advice(Topic.NOT_SCALABLE, f"{quoted(name)}: {obstacle}")
    waiting = {group.queue for group in read.groups if group.waits and group.queue is not None}
    for name in sorted(waiting):
        for reason, count in snapshot.queue_detail(name).stranded.items():
            yield Advice(Topic.STRANDED, f"{quoted(name)}: {count} ({reason.value}): {_mend(snapshot, reason)}")
    for pool in snapshot.configured_pools:
        yield from (Advice(Topic.POOL, f"{quoted(pool.name)}: {text}") for text in _mistakes(snapshot, pool))
    internal = snapshot.queue(INTERNAL_QUEUE)
    if internal is not None and internal.runnable and not snapshot.configured_pools:
        yield Advice(
            Topic.POOL,
            f"{internal.runnable} resumed, forked, scheduled or recovered workflows wait on {quoted(INTERNAL_QUEUE)}, "
            "which no pool serves: configure a pool, so that they wake its pods",
        )


def quoted(name: str) -> str:
    """A name as it may stand in one line of text."""
    return json.dumps(name, ensure_ascii=False)


def _mend(snapshot: Snapshot, reason: Stranding) -> str:
    match reason:
        case Stranding.UNREGISTERED_QUEUE:
            return "no process polls it; register it, or set its limits under queues.<name> in the configuration"
        case Stranding.OTHER_APPLICATION:
            return "enqueue under the application that owns the queue"
        case Stranding.NO_PARTITION_KEY:
            return "the queue is partitioned; enqueue with a partition key"
        case Stranding.VERSION:
            latest = ", ".join(sorted(quoted(row.version) for row in snapshot.read.latest_versions)[:3])
            return (
                f"neither running nor the latest ({latest}); after a rollback set the latest version, or pin the pool's"
            )


def _mistakes(snapshot: Snapshot, pool: Pool) -> Iterator[str]:
    """What a pool's configuration names and the tables do not know: a name misspelt, or not yet used."""
    read = snapshot.read
    with_rows = {group.queue for group in read.groups}
    for queue in sorted(pool.queues or ()):
        if queue not in read.limits and queue not in with_rows:
            yield f"queue {quoted(queue)} is neither registered nor configured and has no workflows; is it spelt right?"
    for queue in sorted(pool.queues or ()):
        owner = read.limits[queue].application if queue in read.limits else None
        if not same_application(owner, pool.application):
            yield (
                f"queue {quoted(queue)} belongs to application {quoted(owner or '')}, "
                f"the pool's is {quoted(pool.application or '')}: its pods do not poll it"
            )
    applications = {
        *(limits.application for limits in read.limits.values()),
        *(group.application for group in read.groups),
        *(row.application for row in read.latest_versions),
    }
    if pool.application is not None and not any(same_application(pool.application, a) for a in applications):
        yield f"application {quoted(pool.application)} has no queue, workflow or version; is it spelt right?"
    executors = {group.executor for group in read.groups if group.status is Status.PENDING}
    if pool.executors and executors and not any(pool.has_executor(executor) for executor in executors):
        yield "its executors patterns match none of the executors that hold work"
