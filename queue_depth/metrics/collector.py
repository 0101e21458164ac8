"""The series of one snapshot, built anew from it: what is gone from the database is gone from the metrics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily

from queue_depth.core.eligibility import Stranding
from queue_depth.core.snapshot import Snapshot
from queue_depth.metrics import families
from queue_depth.metrics.families import Family
from queue_depth.metrics.labels import OTHER, BoundedLabel


def depth_metrics(snapshot: Snapshot, *, label_limit: int) -> tuple[GaugeMetricFamily, ...]:
    """Every depth family with its series.

    Args:
        snapshot: The numbers.
        label_limit: How many queues, pools, applications and versions keep their name; see `labels`.
    """
    read = snapshot.read
    known = set(snapshot.queues)
    owners = {limits.application or "" for limits in read.limits.values()} | {""}
    latest = {row.version for row in read.latest_versions} | {""}
    queues = BoundedLabel(known, lambda name: name not in read.limits, label_limit)
    # Configured pools go first, then registered queues, then whatever else holds rows.
    pools = BoundedLabel(snapshot.pools, lambda name: (name in known) * (1 + (name not in read.limits)), label_limit)
    applications = BoundedLabel(
        (g.application or "" for g in read.groups), lambda name: name not in owners, label_limit
    )
    versions = BoundedLabel((g.version or "" for g in read.groups), lambda name: name not in latest, label_limit)
    bounded = {"queue": queues, "pool": pools, "application": applications, "version": versions}
    return (
        _workflows(snapshot, queues, applications, versions),
        *_queue_numbers(snapshot, queues),
        *_queue_limits(snapshot, queues),
        *_pool_numbers(snapshot, pools),
        gauge(families.FOLDED, (([name], len(label.folded)) for name, label in bounded.items())),
    )


def gauge(family: Family, samples: Iterable[tuple[list[str], float]]) -> GaugeMetricFamily:
    """A gauge family with its samples: label values in the family's order, and the number."""
    metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for values, number in samples:
        metric.add_metric(values, number)
    return metric


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What one value of the queue label shows; see `core.depth.QueueDepth`."""

    runnable: int
    in_flight: int
    stranded: Mapping[Stranding, int]
    oldest_ms: int | None


def _numbers_of(snapshot: Snapshot, names: Iterable[str]) -> _Numbers:
    """Of several queues together; one after the other, as there may be very many."""
    runnable = in_flight = 0
    stranded = dict.fromkeys(Stranding, 0)
    oldest_ms: int | None = None
    for name in names:
        depth = snapshot.queue_detail(name)
        runnable += depth.runnable
        in_flight += depth.in_flight
        for reason, count in depth.stranded.items():
            stranded[reason] += count
        if depth.oldest_ms is not None:
            oldest_ms = depth.oldest_ms if oldest_ms is None else min(oldest_ms, depth.oldest_ms)
    return _Numbers(runnable, in_flight, stranded, oldest_ms)


def _workflows(
    snapshot: Snapshot, queues: BoundedLabel, applications: BoundedLabel, versions: BoundedLabel
) -> GaugeMetricFamily:
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for group in snapshot.read.groups:
        queue = "" if group.queue is None else queues.of(group.queue)
        key = (queue, applications.of(group.application or ""), versions.of(group.version or ""), group.status.value)
        counts[key] += group.count
    return gauge(families.WORKFLOWS, ((list(key), count) for key, count in sorted(counts.items())))


def _queue_numbers(snapshot: Snapshot, queues: BoundedLabel) -> Iterator[GaugeMetricFamily]:
    shown = [(queues.of(name), _numbers_of(snapshot, [name])) for name in queues.named]
    if queues.folded:
        # Only queues with unfinished rows add to the sums.
        with_rows = queues.folded.intersection(group.queue for group in snapshot.read.groups if group.queue)
        shown.append((OTHER, _numbers_of(snapshot, with_rows)))
    yield gauge(families.RUNNABLE, (([queue], numbers.runnable) for queue, numbers in shown))
    yield gauge(
        families.STRANDED,
        (([queue, reason.value], numbers.stranded[reason]) for queue, numbers in shown for reason in Stranding),
    )
    yield gauge(families.IN_FLIGHT, (([queue], numbers.in_flight) for queue, numbers in shown))
    yield gauge(
        families.OLDEST,
        (([queue], numbers.oldest_ms / 1000) for queue, numbers in shown if numbers.oldest_ms is not None),
    )


def _queue_limits(snapshot: Snapshot, queues: BoundedLabel) -> Iterator[GaugeMetricFamily]:
    limits = [(queues.of(name), snapshot.read.limits[name]) for name in queues.named if name in snapshot.read.limits]
    yield gauge(
        families.CONCURRENCY,
        (([queue], limit.concurrency) for queue, limit in limits if limit.concurrency is not None),
    )
    yield gauge(
        families.WORKER_CONCURRENCY,
        (([queue], limit.worker_concurrency) for queue, limit in limits if limit.worker_concurrency is not None),
    )


def _pool_numbers(snapshot: Snapshot, pools: BoundedLabel) -> Iterator[GaugeMetricFamily]:
    found = ((pools.of(name), snapshot.pool(name)) for name in pools.named)
    depths = [(pool, depth) for pool, depth in found if depth is not None]
    yield gauge(families.FLOOR, (([pool], depth.floor_replicas) for pool, depth in depths))
    yield gauge(families.WANTED, (([pool], depth.wanted_replicas) for pool, depth in depths))
    yield gauge(families.BUSY, (([pool], depth.busy_workers) for pool, depth in depths))
