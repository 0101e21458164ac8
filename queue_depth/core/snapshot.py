"""All numbers of one refresh, looked up by queue and by pool."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain

from queue_depth.core.depth import PoolDepth, QueueDepth, QueueRows, Running, pool_depth, queue_depth, running_in
from queue_depth.core.liveness import NO_WITNESS, LivenessView
from queue_depth.core.pool import Pool, queue_pool
from queue_depth.core.table import (
    INTERNAL_QUEUE,
    PartitionGroup,
    RateLimitedStarts,
    Status,
    TableRead,
    WorkflowGroup,
    is_internal,
)
from queue_depth.core.versions import Pending, pending_of, same_application, versions_of


class Snapshot:
    """One read, indexed. Its numbers never change; they are computed when first asked for.

    Args:
        read: What was read.
        pools: The configured pools, by name.
        liveness: What was known of executors at the read.
    """

    def __init__(
        self, read: TableRead, pools: Mapping[str, Pool] | None = None, liveness: LivenessView = NO_WITNESS
    ) -> None:
        self.read = read
        self._pools = dict(pools or {})
        waiting: dict[str, list[WorkflowGroup]] = defaultdict(list)
        pending: dict[str, list[Pending]] = defaultdict(list)
        queueless: list[Pending] = []
        partitions: dict[str, list[PartitionGroup]] = defaultdict(list)
        starts: dict[str, list[RateLimitedStarts]] = defaultdict(list)
        for group in read.groups:
            if group.status is Status.PENDING:
                held = queueless if group.queue is None else pending[group.queue]
                held.append(pending_of(group, liveness))
            elif group.queue is not None:
                waiting[group.queue].append(group)
        for partition in read.partitions:
            partitions[partition.queue].append(partition)
        for start in read.starts:
            starts[start.queue].append(start)
        self._versions = versions_of(chain(queueless, *pending.values()), read.latest_versions)
        self._queueless = tuple(queueless)
        configured = {name for pool in self._pools.values() for name in pool.queues or ()}
        self._queues = {
            name: QueueRows(
                name=name,
                limits=read.limits.get(name),
                waiting=tuple(waiting.get(name, ())),
                pending=tuple(pending.get(name, ())),
                partitions=tuple(partitions.get(name, ())),
                starts=tuple(starts.get(name, ())),
                unregistered_may_run=read.unregistered_may_run,
            )
            for name in sorted({*waiting, *pending, *read.limits, *configured})
        }
        self._names = tuple(self._queues)
        # Every application has it: asked for while it is empty, its numbers are 0.
        self._queues.setdefault(INTERNAL_QUEUE, QueueRows(INTERNAL_QUEUE, limits=None))
        self._internal = tuple(name for name in self._queues if is_internal(name))
        # Nearly sorted already, which makes it cheap where there are very many queues.
        self._pool_names = tuple(sorted([*self._names, *(name for name in self._pools if name not in self._queues)]))
        self._depths: dict[Pool, PoolDepth] = {}
        self._elsewhere: dict[tuple[object, ...], Running] = {}

    @property
    def queues(self) -> tuple[str, ...]:
        """Names of all queues that are registered, configured or hold unfinished rows, sorted."""
        return self._names

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of all pools, sorted: the configured ones, and every queue, as a pool of its own."""
        return self._pool_names

    @property
    def configured_pools(self) -> tuple[Pool, ...]:
        """The configured pools, in the configuration's order."""
        return tuple(self._pools.values())

    def queue(self, name: str) -> PoolDepth | None:
        """The numbers of a queue asked for by its name; None where no such queue is known."""
        return self._depth(queue_pool(name)) if name in self._queues else None

    def pool(self, name: str) -> PoolDepth | None:
        """The numbers of a pool, configured or a queue by its name; None where there is neither."""
        pool = self._pools.get(name)
        return self.queue(name) if pool is None else self._depth(pool)

    def queue_detail(self, name: str) -> QueueDepth:
        """One known queue's own numbers, with stranded rows by reason.

        Raises:
            KeyError: The queue is not in `queues`.
        """
        return queue_depth(self._queues[name], queue_pool(name), self._versions)

    def _depth(self, pool: Pool) -> PoolDepth:
        depth = self._depths.get(pool)
        if depth is None:
            served = self._served_by(pool)
            depth = pool_depth(pool, served, self._running_elsewhere(pool, served), self._versions)
            self._depths[pool] = depth
        return depth

    def _served_by(self, pool: Pool) -> list[QueueRows]:
        if pool.queues is None:
            return [
                rows
                for rows in self._queues.values()
                if rows.limits is None or same_application(rows.limits.application, pool.application)
            ]
        names = pool.queues if pool.by_queue else sorted({*pool.queues, *self._internal})
        return [self._queues[name] for name in names if name in self._queues]

    def _running_elsewhere(self, pool: Pool, served: list[QueueRows]) -> Running:
        """Work that any process of the application may hold, whatever queues it listens to."""
        served_names = {rows.name for rows in served}
        internal = tuple(name for name in self._internal if name not in served_names)
        application = pool.application or _owner(served)
        # Queues of one owner share the answer: thousands of executors are not counted again for each of them.
        key = (application, pool.version, pool.executors, internal)
        running = self._elsewhere.get(key)
        if running is None:
            pending = chain(self._queueless, *(self._queues[name].pending for name in internal))
            mine = (held for held in pending if same_application(held.group.application, application))
            running = self._elsewhere[key] = running_in(pool, mine)
        return running


def _owner(queues: list[QueueRows]) -> str | None:
    owners = {rows.limits.application for rows in queues if rows.limits is not None}
    return owners.pop() if len(owners) == 1 else None
