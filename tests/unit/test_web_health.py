from __future__ import annotations

from harness.reads import enqueued, group, pending, read
from harness.stores import Clock, empty_store, publish, store_of
from queue_depth.core.errors import DatabaseUnreachableError
from queue_depth.core.limits import QueueLimits
from queue_depth.core.table import INTERNAL_QUEUE, SchemaNote, Status
from queue_depth.web import health


def lines_about(heading: str, text: str) -> list[str]:
    return [line.removeprefix(f"{heading}: ") for line in text.splitlines() if line.startswith(f"{heading}:")]


def test_the_process_lives_while_refreshes_begin_even_if_none_succeeds() -> None:
    clock = Clock()
    store = empty_store(clock)
    for clock.now in (0.0, 60.0, 120.0, 3600.0):
        store.attempt_started()
        store.failed(DatabaseUnreachableError("refused"))
        assert health.liveness(store, 5.0) == (True, "ok\n")


def test_the_process_is_dead_when_no_refresh_has_begun_for_the_interval_and_90_seconds() -> None:
    clock = Clock()
    store = empty_store(clock)
    clock.now = 95.0
    assert health.liveness(store, 5.0)[0]
    clock.now = 96.0
    assert health.liveness(store, 5.0) == (
        False,
        "the last refresh began 96 s ago, the limit is 95 s: restart this process\n",
    )


def test_it_is_ready_from_the_first_snapshot_on_however_old_that_is() -> None:
    clock = Clock()
    store = empty_store(clock)
    assert health.readiness(store) == (False, "not ready: no refresh has succeeded yet\n")
    store.attempt_started()
    store.failed(DatabaseUnreachableError("connection refused:\n  check the URL"))
    assert health.readiness(store) == (
        False,
        "not ready: no refresh has succeeded yet: connection refused: check the URL\n",
    )
    publish(store, read())
    clock.now = 10_000.0
    assert health.readiness(store) == (True, "ok\n")


def test_the_explanation_of_a_healthy_exporter_is_short() -> None:
    table = read(enqueued(1), limits=QueueLimits(worker_concurrency=2))
    assert health.explanation(store_of(table)) == (
        True,
        (
            "ready: yes\n"
            "serving numbers: yes\n"
            "last refresh: succeeded\n"
            "snapshot: read at 2027-01-15T08:00:00+00:00 by the database's clock, 1 queues\n"
        ),
    )


def test_the_explanation_names_the_last_error_and_the_age() -> None:
    clock = Clock()
    store = empty_store(clock, max_age_seconds=30)
    publish(store, read(lag_seconds=2.25))
    clock.now = 60.0
    for _ in range(3):
        store.attempt_started()
        store.failed(DatabaseUnreachableError("connection\nrefused"))
    ready, text = health.explanation(store)
    assert ready
    assert "last refresh: failed with database_unreachable, 3 in a row: connection refused\n" in text
    assert "serving numbers: the last snapshot is 62.2 s old" in text
    assert "replication lag: 2.2 s\n" in text


def test_the_explanation_before_any_snapshot_is_not_ready() -> None:
    assert health.explanation(empty_store()) == (
        False,
        "ready: no\nserving numbers: no refresh has succeeded yet\n",
    )


def test_the_explanation_names_what_makes_numbers_less_exact() -> None:
    table = read(
        pending(1, "shared", executor="local"),
        pending(1, None, executor=None),
        pending(1, "fine", executor="pod-1"),
        group("nobodys", Status.ENQUEUED),
        pending(1, INTERNAL_QUEUE, executor="pod-1"),
        limits={
            "fine": QueueLimits(worker_concurrency=1),
            "shared": QueueLimits(worker_concurrency=1),
            'odd\n"name"': QueueLimits(worker_concurrency=1, doubt="partition_queue is TRUE"),
        },
        notes=[SchemaNote("no queues table", "limits are unknown")],
    )
    text = health.explanation(store_of(table))[1]
    assert lines_about("schema", text) == ["no queues table: limits are unknown"]
    assert lines_about("in doubt", text) == ['"odd\\n\\"name\\"": partition_queue is TRUE']
    assert lines_about("executor ids shared, set DBOS__VMID to the pod's name", text) == [
        '"shared"',
        "work without a queue",
    ]
    (obstacle,) = lines_about("not scalable", text)
    assert obstacle.startswith('"nobodys": the queue is not registered')
    (stranded,) = lines_about("stranded", text)
    assert stranded.startswith('"nobodys": 1 (unregistered_queue): no process polls it; register it')


def test_the_explanation_is_bounded() -> None:
    table = read(limits={f"q{number:03}": QueueLimits() for number in range(123)})
    obstacles = lines_about("not scalable", health.explanation(store_of(table))[1])
    assert len(obstacles) == 21
    assert obstacles[0].startswith('"q000": ')
    assert obstacles[-1] == "and 103 more"
