"""Which limits workers obey: a `queues` row, corrected by the configuration."""

from __future__ import annotations

import pytest

from queue_depth.core.limits import QueueLimits, QueueOverride, QueueRow, RateLimit, resolve, resolve_all

LEGACY = QueueRow(
    "q",
    application="shop",
    concurrency=3,
    worker_concurrency=2,
    rate_limit=RateLimit(5, 60.0),
    partition_queue=True,
)


def test_without_a_word_from_the_configuration_the_row_is_obeyed() -> None:
    row = QueueRow("q", application="shop", concurrency=6, worker_concurrency=2, rate_limit=RateLimit(5, 60.0))
    assert resolve(row, QueueOverride(), partition_columns=True) == QueueLimits(
        application="shop", concurrency=6, worker_concurrency=2, rate_limit=RateLimit(5, 60.0)
    )


def test_the_configuration_replaces_only_the_limits_it_names() -> None:
    row = QueueRow("q", concurrency=6, worker_concurrency=2)
    override = QueueOverride(given=frozenset({"worker_concurrency"}), worker_concurrency=4)
    assert resolve(row, override, partition_columns=True) == QueueLimits(concurrency=6, worker_concurrency=4)


def test_a_limit_given_as_none_is_lifted() -> None:
    override = QueueOverride(given=frozenset({"concurrency"}))
    limits = resolve(QueueRow("q", concurrency=6, worker_concurrency=2), override, partition_columns=True)
    assert limits == QueueLimits(worker_concurrency=2)


@pytest.mark.parametrize(
    "row",
    [
        QueueRow("q", concurrency=9, partition_concurrency=1),
        QueueRow("q", concurrency=9, partition_worker_concurrency=1),
        QueueRow("q", concurrency=9, partition_rate_limit=RateLimit(1, 1.0)),
        QueueRow("q", concurrency=9, partition_concurrency=1, partition_queue=True),
    ],
)
def test_any_partition_limit_makes_a_queue_partitioned_and_keeps_its_global_limits(row: QueueRow) -> None:
    limits = resolve(row, QueueOverride(), partition_columns=True)
    assert limits.partitioned
    assert limits.concurrency == 9
    assert limits.doubt == ""


def test_the_partition_flag_alone_turns_all_limits_into_partition_limits_in_a_schema_without_partition_columns() -> (
    None
):
    limits = resolve(LEGACY, QueueOverride(), partition_columns=False)
    assert limits == QueueLimits(
        application="shop",
        partitioned=True,
        partition_concurrency=3,
        partition_worker_concurrency=2,
        partition_rate_limit=RateLimit(5, 60.0),
    )
    assert limits.doubt == ""


def test_the_partition_flag_alone_is_honoured_but_doubted_in_a_schema_with_partition_columns() -> None:
    limits = resolve(LEGACY, QueueOverride(), partition_columns=True)
    assert limits.partition_concurrency == 3
    assert "partitioned" in limits.doubt


@pytest.mark.parametrize("partition_columns", [False, True])
def test_the_configuration_settles_that_the_partition_flag_means_nothing(*, partition_columns: bool) -> None:
    limits = resolve(LEGACY, QueueOverride(partitioned=False), partition_columns=partition_columns)
    assert limits == QueueLimits(application="shop", concurrency=3, worker_concurrency=2, rate_limit=RateLimit(5, 60.0))
    assert limits.doubt == ""


@pytest.mark.parametrize("partition_columns", [False, True])
def test_the_configuration_settles_that_the_partition_flag_counts(*, partition_columns: bool) -> None:
    limits = resolve(LEGACY, QueueOverride(partitioned=True), partition_columns=partition_columns)
    assert limits.partitioned
    assert limits.partition_concurrency == 3
    assert limits.concurrency is None
    assert limits.doubt == ""


def test_the_configuration_may_declare_a_queue_in_code_partitioned() -> None:
    override = QueueOverride(given=frozenset({"concurrency"}), concurrency=1, partitioned=True)
    assert resolve(QueueRow("q"), override, partition_columns=False) == QueueLimits(
        partitioned=True, partition_concurrency=1
    )


def test_a_configuration_that_denies_partitions_drops_the_partition_limits() -> None:
    row = QueueRow("q", concurrency=9, partition_concurrency=1)
    assert resolve(row, QueueOverride(partitioned=False), partition_columns=True) == QueueLimits(concurrency=9)


def test_queues_of_the_database_and_of_the_configuration_are_all_known() -> None:
    limits = resolve_all(
        [QueueRow("registered", worker_concurrency=1)],
        {"in code": QueueOverride(given=frozenset({"worker_concurrency"}), worker_concurrency=4)},
        partition_columns=True,
    )
    assert limits == {
        "registered": QueueLimits(worker_concurrency=1),
        "in code": QueueLimits(worker_concurrency=4),
    }
