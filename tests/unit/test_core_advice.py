"""What an operator is told to mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.reads import enqueued, latest, pending, read
from queue_depth.core.advice import Topic, advice
from queue_depth.core.limits import QueueLimits
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE

if TYPE_CHECKING:
    from queue_depth.core.table import TableRead

GOOD = QueueLimits(worker_concurrency=4)


def texts(table: TableRead, *pools: Pool, topic: Topic | None = None) -> list[str]:
    found = advice(Snapshot(table, {pool.name: pool for pool in pools}))
    return [piece.text for piece in found if topic in {None, piece.topic}]


def test_a_database_as_it_should_be_needs_no_advice() -> None:
    table = read(enqueued(2), pending(1, executor="pod-1"), limits=GOOD)
    assert texts(table, Pool("workers", queues=frozenset({"q"}), executors=("pod-*",))) == []


def test_a_pool_whose_queue_is_misspelt_is_named() -> None:
    (text,) = texts(read(limits=GOOD), Pool("workers", queues=frozenset({"p"})))
    assert text.startswith('"workers": queue "p" is neither registered nor configured')


def test_a_pool_whose_application_nobody_has_is_named() -> None:
    table = read(enqueued(1, application="shop"), limits=QueueLimits(application="shop", worker_concurrency=1))
    (text,) = texts(table, Pool("workers", application="shoop"))
    assert 'application "shoop"' in text
    assert texts(table, Pool("workers", application="shop")) == []


def test_a_pool_that_lists_a_queue_of_another_application_is_named() -> None:
    table = read(enqueued(1), limits=QueueLimits(application="shop", worker_concurrency=1))
    said = texts(table, Pool("workers", queues=frozenset({"q"}), application="bank"), topic=Topic.POOL)
    assert said[0] == (
        '"workers": queue "q" belongs to application "shop", the pool\'s is "bank": its pods do not poll it'
    )


def test_patterns_that_match_no_executor_are_named_only_while_executors_hold_work() -> None:
    pool = Pool("workers", queues=frozenset({"q"}), executors=("worker-*",))
    (text,) = texts(read(pending(1, executor="pod-1"), limits=GOOD), pool)
    assert "match none" in text
    assert texts(read(limits=GOOD), pool) == []


def test_work_on_the_internal_queue_that_wakes_no_pool_is_named_until_there_is_one() -> None:
    table = read(enqueued(2, INTERNAL_QUEUE), limits=GOOD)
    (text,) = texts(table)
    assert text.startswith("2 resumed")
    assert texts(table, Pool("workers", queues=frozenset({"q"}))) == []


def test_work_stranded_by_its_version_is_told_with_the_latest_version() -> None:
    table = read(enqueued(3, version="v1"), limits=GOOD, latest_versions=[latest("v2")])
    (text,) = texts(table, topic=Topic.STRANDED)
    assert text.startswith('"q": 3 (version)')
    assert '"v2"' in text
    assert "rollback" in text
