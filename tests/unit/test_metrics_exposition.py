from __future__ import annotations

import gc
import platform
import weakref
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

import queue_depth
from harness.reads import OBSERVED_AT_MS, delayed, enqueued, latest, pending, read
from harness.stores import WALL, Clock, empty_store, publish, store_of
from queue_depth.core.errors import REASONS, DatabaseUnreachableError, ReadTimeoutError
from queue_depth.core.limits import QueueLimits
from queue_depth.core.pool import Pool
from queue_depth.metrics.exposition import MetricsExposition
from queue_depth.metrics.families import DEPTH_FAMILIES, OWN_FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queue_depth.core.table import TableRead
    from queue_depth.store import SnapshotStore

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
HOSTILE_NAMES = [
    'quoted"name',
    "back\\slash",
    "two\nlines",
    'up} 1\nqueue_depth_up{x="',
    '{queue=~".*"}',
    "'; DROP TABLE workflow_status; --",
    "grüße/日本",
    " ",
    "#",
    "\\n",
    "%2F",
]

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(exposition: MetricsExposition, accept: str | None = None) -> Samples:
    body, _ = exposition.render(accept)
    parse = parse_openmetrics if accept else parse_text
    found: Samples = {}
    for family in parse(body.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"two series {key}"
            found[key] = sample.value
    return found


def value(exposition: MetricsExposition, name: str, **labels: str) -> float | None:
    return samples(exposition).get((name, frozenset(labels.items())))


def label_values(exposition: MetricsExposition, name: str, label: str) -> set[str]:
    return {dict(labels)[label] for found, labels in samples(exposition) if found == name}


def exposition_of(
    table: TableRead, pools: Mapping[str, Pool] | None = None, *, label_limit: int = 100
) -> MetricsExposition:
    return MetricsExposition(store_of(table, pools), label_limit=label_limit)


def test_workflows_are_counted_by_queue_application_version_and_status() -> None:
    exposition = exposition_of(
        read(
            enqueued(3, "emails", application="shop", version="v1"),
            pending(2, "emails", executor="pod-1", application="shop", version="v1"),
            pending(5, "emails", executor="pod-2", application="shop", version="v1"),
            delayed(1, "emails", due=True, version="v1"),
            delayed(4, "emails", due=False, version="v1"),
            limits={"emails": QueueLimits()},
        )
    )

    def counted(status: str, application: str = "shop") -> float | None:
        return value(
            exposition, "dbos_queue_workflows", queue="emails", application=application, version="v1", status=status
        )

    assert counted("ENQUEUED") == 3
    assert counted("PENDING") == 7
    assert counted("DELAYED", application="") == 5
    assert counted("DELAYED") is None


def test_work_without_a_queue_is_counted_under_the_empty_name() -> None:
    exposition = exposition_of(read(pending(2, None)))
    assert value(exposition, "dbos_queue_workflows", queue="", application="", version="", status="PENDING") == 2
    assert label_values(exposition, "dbos_queue_in_flight_workflows", "queue") == {"q"}


def test_a_queue_shows_what_can_start_what_runs_and_since_when_it_waits() -> None:
    exposition = exposition_of(
        read(
            enqueued(9, oldest_ms=OBSERVED_AT_MS - 12_500),
            pending(2, executor="pod-1"),
            pending(1, executor="pod-2"),
            limits=QueueLimits(concurrency=8, worker_concurrency=2),
        )
    )
    assert value(exposition, "dbos_queue_runnable_workflows", queue="q") == 5
    assert value(exposition, "dbos_queue_in_flight_workflows", queue="q") == 3
    assert value(exposition, "dbos_queue_oldest_enqueued_timestamp_seconds", queue="q") == (
        OBSERVED_AT_MS / 1000 - 12.5
    )
    assert value(exposition, "dbos_queue_concurrency_limit", queue="q") == 8
    assert value(exposition, "dbos_queue_worker_concurrency_limit", queue="q") == 2


def test_an_empty_queue_has_zeros_and_neither_limits_nor_an_oldest_workflow() -> None:
    exposition = exposition_of(read())
    assert value(exposition, "dbos_queue_runnable_workflows", queue="q") == 0
    assert value(exposition, "dbos_queue_in_flight_workflows", queue="q") == 0
    names = {name for name, _ in samples(exposition)}
    assert "dbos_queue_oldest_enqueued_timestamp_seconds" not in names
    assert not {name for name in names if name.endswith("_limit")}


def test_stranded_workflows_are_counted_under_every_reason_zeros_included() -> None:
    exposition = exposition_of(
        read(
            enqueued(4, "keyed", version="v2", keyed=1),
            enqueued(2, "keyed", version="v1", keyed=2),
            enqueued(1, "nobodys"),
            enqueued(6, "owned", application="blog", version="v2"),
            limits={
                "keyed": QueueLimits(partitioned=True, partition_concurrency=1),
                "owned": QueueLimits(application="shop"),
            },
            latest_versions=[latest("v2")],
        )
    )
    stranded = {
        (queue, reason): value(exposition, "dbos_queue_stranded_workflows", queue=queue, reason=reason)
        for queue in ("keyed", "nobodys", "owned")
        for reason in ("unregistered_queue", "other_application", "version", "no_partition_key")
    }
    assert {key: number for key, number in stranded.items() if number} == {
        ("keyed", "no_partition_key"): 3,
        ("keyed", "version"): 2,
        ("nobodys", "unregistered_queue"): 1,
        ("owned", "other_application"): 6,
    }
    assert None not in stranded.values()


def test_configured_pools_and_queues_show_their_replicas() -> None:
    exposition = exposition_of(
        read(
            enqueued(4, "emails"),
            pending(2, "emails", executor="pod-1"),
            pending(2, "reports", executor="pod-2"),
            limits={name: QueueLimits(worker_concurrency=2) for name in ("emails", "reports")},
        ),
        {"shop": Pool("shop", queues=frozenset({"emails", "reports"}))},
    )

    def shown(pool: str) -> list[float | None]:
        names = ("dbos_pool_floor_replicas", "dbos_pool_wanted_replicas", "dbos_pool_busy_workers")
        return [value(exposition, name, pool=pool) for name in names]

    assert shown("shop") == [2, 3, 2]
    assert shown("emails") == [1, 3, 1]
    assert shown("reports") == [1, 0, 1]


def test_before_the_first_refresh_there_is_no_depth_series_and_every_outcome_is_zero() -> None:
    exposition = MetricsExposition(empty_store(), label_limit=10)
    found = samples(exposition)
    assert found["queue_depth_up", frozenset()] == 0
    assert not [name for name, _ in found if name.startswith("dbos_")]
    assert not [name for name, _ in found if name.startswith("queue_depth_last_")]
    outcomes = {dict(labels)["outcome"]: n for (name, labels), n in found.items() if name.endswith("refreshes_total")}
    assert outcomes == dict.fromkeys(("success", *REASONS), 0)


def test_a_stale_snapshot_takes_the_depth_series_away_and_a_new_one_brings_them_back() -> None:
    clock = Clock()
    store = empty_store(clock, max_age_seconds=30)
    exposition = MetricsExposition(store, label_limit=10)
    publish(store, read(enqueued(1)))
    assert value(exposition, "queue_depth_up") == 1
    clock.now = 31
    store.attempt_started()
    store.failed(DatabaseUnreachableError("refused"))
    found = samples(exposition)
    assert found["queue_depth_up", frozenset()] == 0
    assert not [name for name, _ in found if name.startswith("dbos_")]
    assert found["queue_depth_last_success_timestamp_seconds", frozenset()] == WALL
    assert found["queue_depth_last_attempt_timestamp_seconds", frozenset()] == WALL + 31
    publish(store, read(enqueued(2)))
    assert value(exposition, "queue_depth_up") == 1
    assert value(exposition, "dbos_queue_runnable_workflows", queue="q") == 2


def test_refreshes_are_counted_by_outcome_and_successful_ones_timed() -> None:
    store = store_of(read())
    store.failed(ReadTimeoutError("slow"))
    store.failed(ReadTimeoutError("slow"))
    exposition = MetricsExposition(store, label_limit=10)
    exposition.observe_refresh(0.02)
    exposition.observe_refresh(3.0)
    assert value(exposition, "queue_depth_refreshes_total", outcome="success") == 1
    assert value(exposition, "queue_depth_refreshes_total", outcome="timeout") == 2
    assert value(exposition, "queue_depth_refresh_duration_seconds_count") == 2
    assert value(exposition, "queue_depth_refresh_duration_seconds_sum") == pytest.approx(3.02)


def test_requests_are_counted_by_route_and_code() -> None:
    exposition = MetricsExposition(empty_store(), label_limit=10)
    for code in (200, 200, 503):
        exposition.count_request("/v1/queues/{queue}", code)
    counted = "queue_depth_http_requests_total"
    assert value(exposition, counted, route="/v1/queues/{queue}", code="200") == 2
    assert value(exposition, counted, route="/v1/queues/{queue}", code="503") == 1


def test_the_build_says_its_versions() -> None:
    exposition = MetricsExposition(empty_store(), label_limit=10)
    versions = {"version": queue_depth.__version__, "python": platform.python_version()}
    assert value(exposition, "queue_depth_build_info", **versions) == 1


def test_queues_and_versions_that_are_gone_leave_with_their_series() -> None:
    store = store_of(read(enqueued(1, "old", version="v1"), limits={}, unregistered_may_run=True))
    exposition = MetricsExposition(store, label_limit=10)
    assert label_values(exposition, "dbos_queue_workflows", "version") == {"v1"}
    publish(store, read(enqueued(1, "new", version="v2"), limits={}, unregistered_may_run=True))
    assert label_values(exposition, "dbos_queue_workflows", "version") == {"v2"}
    assert label_values(exposition, "dbos_pool_wanted_replicas", "pool") == {"new"}


def many_queues() -> TableRead:
    return read(
        enqueued(1, "a", oldest_ms=OBSERVED_AT_MS - 7000),
        enqueued(2, "b", oldest_ms=OBSERVED_AT_MS - 9000),
        pending(4, "c"),
        enqueued(8, "registered", oldest_ms=OBSERVED_AT_MS - 1000),
        limits={"registered": QueueLimits(worker_concurrency=2), "silent": QueueLimits(concurrency=3)},
        unregistered_may_run=True,
    )


def test_queues_beyond_the_limit_are_summed_and_registered_ones_keep_their_names() -> None:
    exposition = exposition_of(many_queues(), label_limit=2)
    assert label_values(exposition, "dbos_queue_runnable_workflows", "queue") == {"registered", "silent", "_other"}
    assert value(exposition, "dbos_queue_runnable_workflows", queue="_other") == 3
    assert value(exposition, "dbos_queue_in_flight_workflows", queue="_other") == 4
    assert value(exposition, "dbos_queue_oldest_enqueued_timestamp_seconds", queue="_other") == (
        OBSERVED_AT_MS / 1000 - 9
    )
    assert value(exposition, "dbos_queue_workflows", queue="_other", application="", version="", status="ENQUEUED") == 3
    assert value(exposition, "queue_depth_folded_label_values", label="queue") == 3


def test_the_sum_over_queues_is_the_same_under_any_limit() -> None:
    def total(label_limit: int, name: str) -> float:
        found = samples(exposition_of(many_queues(), label_limit=label_limit))
        return sum(number for (series, _), number in found.items() if series == name)

    for name in ("dbos_queue_workflows", "dbos_queue_runnable_workflows", "dbos_queue_stranded_workflows"):
        assert {total(limit, name) for limit in range(1, 7)} == {total(100, name)}


def test_limits_and_replicas_have_no_shared_series_as_their_sum_would_mean_nothing() -> None:
    exposition = exposition_of(many_queues(), label_limit=1)
    assert label_values(exposition, "dbos_queue_worker_concurrency_limit", "queue") == {"registered"}
    assert label_values(exposition, "dbos_queue_concurrency_limit", "queue") == set()
    assert label_values(exposition, "dbos_pool_wanted_replicas", "pool") == {"registered"}
    assert value(exposition, "queue_depth_folded_label_values", label="pool") == 4


def test_configured_pools_keep_their_names_before_queues() -> None:
    exposition = exposition_of(many_queues(), {"zz-pool": Pool("zz-pool")}, label_limit=2)
    assert label_values(exposition, "dbos_pool_wanted_replicas", "pool") == {"zz-pool", "registered"}


def test_versions_and_applications_are_bounded_and_the_latest_and_owning_ones_keep_their_names() -> None:
    exposition = exposition_of(
        read(
            *(enqueued(1, "emails", application=f"app-{n}", version=f"v{n}") for n in range(5)),
            limits={"emails": QueueLimits(application="app-3")},
            latest_versions=[latest("v4")],
        ),
        label_limit=1,
    )
    assert label_values(exposition, "dbos_queue_workflows", "version") == {"v4", "_other"}
    assert label_values(exposition, "dbos_queue_workflows", "application") == {"app-3", "_other"}
    found = samples(exposition)
    assert sum(number for (name, _), number in found.items() if name == "dbos_queue_workflows") == 5


def test_a_queue_called_other_is_not_taken_for_the_shared_series() -> None:
    exposition = exposition_of(
        read(
            enqueued(5, "_other"),
            enqueued(1, "a"),
            limits={"_other": QueueLimits()},
            unregistered_may_run=True,
        ),
        label_limit=1,
    )
    assert value(exposition, "dbos_queue_runnable_workflows", queue="__other") == 5
    assert value(exposition, "dbos_queue_runnable_workflows", queue="_other") == 1


@pytest.mark.parametrize("accept", [None, OPENMETRICS])
@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_is_one_label_value_and_nothing_more(name: str, accept: str | None) -> None:
    exposition = exposition_of(
        read(enqueued(1, name, application=name, version=name), limits={name: QueueLimits(concurrency=2)})
    )
    found = samples(exposition, accept)
    labels = {"queue": name, "application": name, "version": name, "status": "ENQUEUED"}
    assert found["dbos_queue_workflows", frozenset(labels.items())] == 1
    assert found["dbos_pool_wanted_replicas", frozenset({"pool": name}.items())] == 1
    assert found["queue_depth_up", frozenset()] == 1


@pytest.mark.parametrize(
    ("accept", "content_type", "last_line"),
    [
        (None, "text/plain; version=0.0.4; charset=utf-8", b""),
        ("text/html", "text/plain; version=0.0.4; charset=utf-8", b""),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores", b"# EOF"),
    ],
)
def test_the_format_is_negotiated(accept: str | None, content_type: str, last_line: bytes) -> None:
    body, answered = exposition_of(read()).render(accept)
    assert answered == content_type
    assert body.endswith(last_line + b"\n")
    assert (b"# EOF" in body) == bool(last_line)


def full_store() -> SnapshotStore:
    return store_of(
        read(
            enqueued(3, version="v1"),
            pending(1, version="v1"),
            limits=QueueLimits(concurrency=9, worker_concurrency=2),
        )
    )


def test_every_family_of_the_table_is_exposed_under_its_type_help_and_labels_and_no_other_is() -> None:
    exposition = MetricsExposition(full_store(), label_limit=10)
    exposition.count_request("/metrics", 200)
    exposition.observe_refresh(0.1)
    exposed = {family.name: family for family in parse_openmetrics(exposition.render(OPENMETRICS)[0].decode())}  # type: ignore[no-untyped-call]  # the client has no types there
    suffixes = {"counter": "_total", "info": "_info"}
    for family in (*DEPTH_FAMILIES, *OWN_FAMILIES):
        shown = exposed.pop(family.name.removesuffix(suffixes.get(family.type, "")))
        assert (shown.type, shown.documentation) == (family.type, family.help)
        for sample in shown.samples:
            assert set(sample.labels) - {"le"} == set(family.labels), sample
    assert not exposed


def test_labels_never_name_an_executor() -> None:
    body, _ = exposition_of(read(pending(1, executor="pod-7f9c"), pending(1, None, executor="pod-7f9c"))).render(None)
    assert b"pod-7f9c" not in body


def test_a_snapshot_is_aggregated_once_and_not_kept_alive() -> None:
    store = full_store()
    exposition = MetricsExposition(store, label_limit=10)
    first = [metric for metric in exposition.collect() if metric.name.startswith("dbos_")]
    second = [metric for metric in exposition.collect() if metric.name.startswith("dbos_")]
    assert first
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert store.snapshot is not None
    old = weakref.ref(store.snapshot)
    publish(store, read())
    gc.collect()
    assert old() is None
