"""What a scrape gets: the depth series of the last fresh snapshot and the exporter's own, without any I/O."""

import platform
import threading
import weakref
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from queue_depth import __version__
from queue_depth.core.errors import REASONS
from queue_depth.core.snapshot import Snapshot
from queue_depth.metrics import families
from queue_depth.metrics.collector import depth_metrics, gauge
from queue_depth.metrics.families import Family
from queue_depth.store import NoFreshSnapshotError, SnapshotStore


class MetricsExposition(Collector):
    """Everything under `/metrics`, in a registry of its own.

    Args:
        store: Where the snapshots are.
        label_limit: How many values of each label keep their name; the others share `_other`.
    """

    def __init__(self, store: SnapshotStore, *, label_limit: int) -> None:
        self._store = store
        self._label_limit = label_limit
        self._building = threading.Lock()
        self._built: tuple[weakref.ref[Snapshot], tuple[GaugeMetricFamily, ...]] | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._refresh_duration = Histogram(
            families.REFRESH_DURATION.name, families.REFRESH_DURATION.help, registry=self._registry
        )
        self._requests = Counter(
            families.HTTP_REQUESTS.name,
            families.HTTP_REQUESTS.help,
            families.HTTP_REQUESTS.labels,
            registry=self._registry,
        )

    def render(self, accept: str | None) -> tuple[bytes, str]:
        """The body and its content type, negotiated by the `Accept` header: OpenMetrics or the text format.

        May run in another thread than the poller's: it takes the snapshot once.
        """
        encode, content_type = choose_encoder(accept or "")
        return encode(self._registry), content_type

    def observe_refresh(self, seconds: float) -> None:
        """A refresh succeeded and took so long."""
        self._refresh_duration.observe(seconds)

    def count_request(self, route: str, code: int) -> None:
        """A request was answered; `route` is a template, never a path."""
        self._requests.labels(route, str(code)).inc()

    def collect(self) -> Iterator[Metric]:
        """All families but the two instruments, which collect themselves."""
        try:
            snapshot = self._store.fresh().snapshot
        except NoFreshSnapshotError:
            yield gauge(families.UP, [([], 0)])
        else:
            yield gauge(families.UP, [([], 1)])
            yield from self._depth_metrics(snapshot)
        outcomes = dict(self._store.outcomes)
        refreshes = CounterMetricFamily(
            families.REFRESHES.name, families.REFRESHES.help, labels=families.REFRESHES.labels
        )
        for outcome in ("success", *REASONS):
            refreshes.add_metric([outcome], outcomes.get(outcome, 0))
        yield refreshes
        yield from _since(families.LAST_SUCCESS, self._store.last_success_timestamp)
        yield from _since(families.LAST_ATTEMPT, self._store.last_attempt_timestamp)
        info = families.BUILD_INFO
        yield InfoMetricFamily(
            info.name.removesuffix("_info"),
            info.help,
            value=dict(zip(info.labels, (__version__, platform.python_version()), strict=True)),
        )

    def _depth_metrics(self, snapshot: Snapshot) -> tuple[GaugeMetricFamily, ...]:
        """Built once for each snapshot, however many scrape it; an old snapshot is not kept alive."""
        # Scrapes that come together wait for the one that builds.
        with self._building:
            if self._built is None or self._built[0]() is not snapshot:
                self._built = weakref.ref(snapshot), depth_metrics(snapshot, label_limit=self._label_limit)
            return self._built[1]


def _since(family: Family, timestamp: float | None) -> Iterator[GaugeMetricFamily]:
    if timestamp is not None:
        yield gauge(family, [([], timestamp)])
