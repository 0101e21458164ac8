"""What a schema's columns and indexes mean, without a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from queue_depth.core.errors import PermissionDeniedError, SchemaUnreadableError
from queue_depth.postgres.schema import READABLE, Index, Schema, schema_of
from queue_depth.postgres.statements import grants, literal, quoted, statements

if TYPE_CHECKING:
    from collections.abc import Iterable

IN_FLIGHT = Index(
    "idx_workflow_status_in_flight_v2",
    ("queue_name", "status", "priority", "created_at"),
    "(status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text]))",
)
STATUS = Index("workflow_status_status_index", ("status",), "")
STARTED = Index("idx_workflow_status_queue_status_started", ("queue_name", "status", "started_at_epoch_ms"), "")
DEDUPLICATION = Index("uq_workflow_status_queue_name_dedup_id", ("queue_name", "deduplication_id"), "")
KEYED = Index(
    "idx_workflow_status_partition_dequeue_v3",
    ("queue_name", "status", "queue_partition_key"),
    "((status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text])) AND (queue_partition_key IS NOT NULL))",
)

NEWEST = {*(f"{table}.{column}" for table, columns in READABLE.items() for column in columns), "workflow_input.inputs"}


def judged(
    *, without: Iterable[str] = (), denied: Iterable[str] = (), indexes: Iterable[Index] = (IN_FLIGHT,)
) -> Schema:
    """Judge the newest schema without some columns (or, by `table.*`, tables) and some rights."""
    without, denied = set(without), set(denied)
    columns = [
        (table, column, f"{table}.{column}" not in denied)
        for table, column in (name.split(".") for name in sorted(NEWEST))
        if not {f"{table}.{column}", f"{table}.*"} & without
    ]
    return schema_of("dbos", columns, indexes, role="watcher")


def missing(schema: Schema) -> list[str]:
    return [note.missing for note in schema.notes]


def test_the_newest_schema_lacks_nothing() -> None:
    schema = judged()
    assert schema.notes == ()
    assert schema.partition_columns
    assert not schema.unregistered_may_run
    assert schema.searched_queue == "queue_name"
    assert {table: set(columns) for table, columns in READABLE.items()} == {
        table: set(schema.readable[table]) for table in READABLE
    }


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ({"queues.*"}, "no table queues"),
        ({"queues.worker_concurrency"}, "no queues.worker_concurrency"),
        ({"queues.partition_concurrency"}, "no queues.partition_concurrency"),
        ({"application_versions.*"}, "no table application_versions"),
        ({"application_versions.version_timestamp"}, "no application_versions.version_timestamp"),
        ({"workflow_status.application_name"}, "no workflow_status.application_name"),
        ({"workflow_status.queue_partition_key"}, "no workflow_status.queue_partition_key"),
        ({"workflow_status.delay_until_epoch_ms"}, "no workflow_status.delay_until_epoch_ms"),
    ],
)
def test_what_is_absent_is_noted_once_and_with_an_effect(without: set[str], said: str) -> None:
    schema = judged(without=without)
    assert missing(schema) == [said]
    assert str(schema.notes[0]) == f"{said}: {schema.notes[0].effect}"
    assert len(schema.notes[0].effect) > 20


@pytest.mark.parametrize("name", sorted(NEWEST - {"workflow_input.inputs", "workflow_status.rate_limited"}))
def test_each_column_that_may_not_be_read_is_an_error_or_a_note_that_names_it(name: str) -> None:
    try:
        (said,) = missing(judged(denied={name}))
    except PermissionDeniedError as error:
        said = str(error)
        assert name.startswith("workflow_status.")
    assert said.startswith('role "watcher" may not read')
    assert name.rpartition(".")[2] in said
    assert "`queue-depth grants`" in said


@pytest.mark.parametrize(
    "column", ["status", "queue_name", "executor_id", "application_version", "updated_at", "started_at_epoch_ms"]
)
def test_a_needed_column_that_is_absent_is_an_error_that_names_it(column: str) -> None:
    with pytest.raises(SchemaUnreadableError, match=rf'"dbos"\.workflow_status has no column {column}: .*upgrade DBOS'):
        judged(without={f"workflow_status.{column}"})


def test_absence_is_told_before_a_missing_right() -> None:
    with pytest.raises(SchemaUnreadableError, match="no column status"):
        judged(without={"workflow_status.status"}, denied={"workflow_status.queue_name"})


def test_no_table_is_an_error_that_names_the_setting() -> None:
    with pytest.raises(SchemaUnreadableError, match="set QUEUE_DEPTH_SCHEMA"):
        schema_of("dbos", [], [], role="watcher")


@pytest.mark.parametrize(
    ("without", "indexes", "condition", "noted"),
    [
        (set(), [IN_FLIGHT], "rate_limited = TRUE AND status NOT IN ('ENQUEUED', 'DELAYED')", False),
        ({"rate_limited"}, [STATUS, STARTED], "status IN ('PENDING', 'SUCCESS', 'ERROR')", False),
        ({"rate_limited"}, [STATUS, DEDUPLICATION], "status = 'PENDING'", True),
    ],
)
def test_starts_are_counted_as_the_dbos_of_that_schema_does(
    without: set[str], indexes: list[Index], condition: str, *, noted: bool
) -> None:
    schema = judged(without={f"workflow_status.{column}" for column in without}, indexes=indexes)
    assert schema.counts_as_start == condition
    assert any("rate limit" in note.effect for note in schema.notes) == noted


@pytest.mark.parametrize(
    ("indexes", "found"),
    [
        ([IN_FLIGHT], True),
        ([STATUS], True),
        ([KEYED], False),
        ([STARTED], False),
        ([DEDUPLICATION], False),
        ([], False),
    ],
)
def test_an_index_that_finds_all_unfinished_rows_and_few_others_is_told_from_the_rest(
    indexes: list[Index], *, found: bool
) -> None:
    assert ("no index on the status of workflow_status" not in missing(judged(indexes=indexes))) == found


def test_queues_are_not_searched_by_an_index_that_holds_every_finished_row() -> None:
    assert judged(indexes=[STATUS, DEDUPLICATION]).searched_queue == "(queue_name || '')"
    assert judged(indexes=[STATUS, DEDUPLICATION, STARTED]).searched_queue == "queue_name"


def test_the_absence_of_workflow_input_tells_that_queues_may_live_in_code() -> None:
    assert judged(without={"workflow_input.*"}).unregistered_may_run


def test_statements_name_nothing_that_is_absent() -> None:
    absent = {
        "workflow_status.application_name",
        "workflow_status.delay_until_epoch_ms",
        "workflow_status.queue_partition_key",
        "workflow_status.rate_limited",
        "queues.*",
        "application_versions.*",
    }
    fitted = statements(judged(without=absent, indexes=[STATUS]))
    assert fitted.partitions is None
    sent = [line for text in (fitted.catalog, fitted.workflows, fitted.starts) for line in text.splitlines()]
    code = "\n".join(line for line in sent if not line.startswith("--"))
    for name in ("rate_limited", "DELAYED", "dbos.queues", '"dbos".queues', '"dbos".application_versions'):
        assert name not in code
    assert "NULL::text AS application_name" in code
    assert "{" not in code


def test_names_and_strings_are_quoted_as_sql_wants_them() -> None:
    assert quoted('a "b"') == '"a ""b"""'
    assert literal("it's") == "'it''s'"
    assert literal("back\\slash") == " E'back\\\\slash'"


def test_the_script_grants_columns_only() -> None:
    script = grants(schema="my schema", role="o'role")
    assert "'my schema'" in script
    assert "'o''role'" in script
    assert all(f"'{table}.{column}'" in script for table, columns in READABLE.items() for column in columns)
    assert "inputs" not in script.partition("DO $")[2]
