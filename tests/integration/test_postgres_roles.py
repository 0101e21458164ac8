"""The role of the documentation: made by the script, enough to read, and good for nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from harness.dump import columns
from harness.reading import read_once, reader_on
from harness.roles import as_user, create_role, reader_of
from harness.rows import insert_application_version, insert_queue, insert_workflows
from harness.schemas import ALL_SCHEMAS
from queue_depth.core.errors import PermissionDeniedError
from queue_depth.core.limits import QueueOverride, RateLimit
from queue_depth.postgres.schema import READABLE
from queue_depth.postgres.statements import grants

if TYPE_CHECKING:
    from collections.abc import Callable

ROLE = "watcher"

OVERRIDES = {
    "queue": QueueOverride(frozenset({"rate_limit"}), rate_limit=RateLimit(9, 60)),
    "shards": QueueOverride(frozenset({"partition_concurrency"}), partition_concurrency=2),
}


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def fresh_role(database_of: Callable[..., str]) -> Callable[[str], str]:
    """Make a database, without grants, and return its owner's URI; the role exists on the server."""

    def make(source: str) -> str:
        dsn = database_of(source)
        create_role(dsn, ROLE)
        return dsn

    return make


@pytest.mark.parametrize("source", ALL_SCHEMAS)
async def test_the_granted_role_reads_all_that_the_owner_reads_and_nothing_else(
    source: str, database_of: Callable[..., str]
) -> None:
    dsn = database_of(source)
    insert_workflows(dsn, application_name="app", status="PENDING", rate_limited=True)
    insert_workflows(dsn, application_name="app", queue_name="shards", queue_partition_key="key")
    if columns(dsn, "queues"):
        insert_queue(dsn, "queue", worker_concurrency=2)
    if columns(dsn, "application_versions"):
        insert_application_version(dsn)
    role = reader_of(dsn, role=ROLE)
    owners, roles = await read_once(dsn, overrides=OVERRIDES), await read_once(role, overrides=OVERRIDES)
    assert (roles.groups, roles.partitions, roles.starts, roles.limits) == (
        owners.groups,
        owners.partitions,
        owners.starts,
        owners.limits,
    )
    assert (roles.latest_versions, roles.notes) == (owners.latest_versions, owners.notes)
    with psycopg.connect(role, autocommit=True) as connection:
        for table in tables_of(dsn):
            for column in columns(dsn, table):
                may_read = connection.execute(
                    "SELECT has_column_privilege(%s, %s, 'SELECT')", (f"dbos.{table}", column)
                ).fetchone()
                assert may_read == (column in READABLE.get(table, ()),), f"{table}.{column}"
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("dbos", table)))
        for forbidden in (
            "SELECT * FROM dbos.workflow_status",
            "SELECT inputs FROM dbos.workflow_status",
            "SELECT output FROM dbos.workflow_status",
            "UPDATE dbos.workflow_status SET status = 'CANCELLED'",
            "INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('x')",
            "TRUNCATE dbos.workflow_status",
            "CREATE TABLE dbos.mine (id int)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden.encode())


def tables_of(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [
            name
            for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'dbos'").fetchall()
        ]


async def test_the_script_may_run_again_and_after_an_upgrade(fresh_role: Callable[[str], str]) -> None:
    dsn = fresh_role("2.29.0")
    script = grants(schema="dbos", role=ROLE)
    execute(dsn, script, script)
    for table in READABLE:
        execute(dsn, f"ALTER TABLE dbos.{table} ADD COLUMN application_name TEXT")
    assert "no workflow_status.application_name" not in {n.missing for n in (await read_once(dsn)).notes}
    (denied,) = [n for n in (await read_once(as_user(dsn, ROLE))).notes if "application_name" in n.missing]
    assert denied.missing.startswith(f'role "{ROLE}" may not read workflow_status.application_name')
    assert "`queue-depth grants`" in denied.missing
    execute(dsn, script)
    assert not [n for n in (await read_once(as_user(dsn, ROLE))).notes if "application_name" in n.missing]


@pytest.mark.parametrize("name", ['ro"le', "o'role", "a $$ b", "back\\slash", "{role}", "Роль 'x'; DROP"])
async def test_a_role_and_a_schema_of_any_name_are_granted(name: str, dbos_database: str) -> None:
    insert_workflows(dbos_database)
    execute(dbos_database, f'ALTER SCHEMA dbos RENAME TO "{name.replace(chr(34), chr(34) * 2)}"')
    try:
        read = await read_once(reader_of(dbos_database, role=name, schema=name), schema=name)
        assert [group.count for group in read.groups] == [1]
    finally:
        drop_role(dbos_database, name)


def drop_role(dsn: str, name: str) -> None:
    role = sql.Identifier(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
        connection.execute(sql.SQL("DROP ROLE {}").format(role))


async def test_without_any_grant_the_error_names_role_columns_and_mend(fresh_role: Callable[[str], str]) -> None:
    dsn = fresh_role("3.4.0")
    expected = re.escape(f'role "{ROLE}" may not read status, queue_name, executor_id') + ".*`queue-depth grants`"
    with pytest.raises(PermissionDeniedError, match=expected):
        await read_once(as_user(dsn, ROLE))


@pytest.mark.parametrize("column", ["status", "executor_id", "started_at_epoch_ms"])
async def test_a_needed_column_that_is_taken_away_while_serving_is_an_error_until_it_is_granted(
    column: str, dbos_database: str
) -> None:
    insert_workflows(dbos_database)
    role = reader_of(dbos_database, role=ROLE)
    async with reader_on(role) as reader:
        await reader.read()
        execute(dbos_database, f"REVOKE SELECT ({column}) ON dbos.workflow_status FROM {ROLE}")
        with pytest.raises(PermissionDeniedError, match=f'role "{ROLE}" may not read {column} of'):
            await reader.read()
        execute(dbos_database, f"GRANT SELECT ({column}) ON dbos.workflow_status TO {ROLE}")
        assert len((await reader.read()).groups) == 1


@pytest.mark.parametrize(
    ("table", "column", "effect"),
    [
        ("workflow_status", "application_name", "cannot be told apart"),
        ("workflow_status", "queue_partition_key", "partition"),
        ("workflow_status", "delay_until_epoch_ms", "delayed"),
        ("queues", "worker_concurrency", "limits of queues are unknown"),
        ("queues", "partition_rate_limit_max", "limits of partitioned queues"),
        ("queues", "application_name", "cannot be told apart"),
        ("application_versions", "application_name", "cannot be told apart"),
        ("application_versions", "version_timestamp", "the latest version is unknown"),
    ],
)
async def test_a_wanted_column_that_may_not_be_read_is_noted_until_it_is_granted(
    table: str, column: str, effect: str, dbos_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queue_depth.postgres.reader._LOOK_AGAIN_SECONDS", 0.0)
    insert_workflows(dbos_database, application_name="app")
    role = reader_of(dbos_database, role=ROLE)
    execute(dbos_database, f"REVOKE SELECT ({column}) ON dbos.{table} FROM {ROLE}")
    async with reader_on(role) as reader:
        notes = [note for note in (await reader.read()).notes if f'role "{ROLE}" may not read' in note.missing]
        assert len(notes) == 1
        assert effect in notes[0].effect
        assert f"{table}.{column}" in notes[0].missing
        execute(dbos_database, f"GRANT SELECT ({column}) ON dbos.{table} TO {ROLE}")
        assert (await reader.read()).notes == ()


async def test_grants_are_looked_for_once_a_minute_and_not_at_each_read(dbos_database: str) -> None:
    role = reader_of(dbos_database, role=ROLE)
    execute(dbos_database, f"REVOKE SELECT (application_name) ON dbos.workflow_status FROM {ROLE}")
    async with reader_on(role) as reader:
        assert (await reader.read()).notes
        execute(dbos_database, f"GRANT SELECT (application_name) ON dbos.workflow_status TO {ROLE}")
        assert (await reader.read()).notes


async def test_usage_of_the_schema_is_needed_and_named(fresh_role: Callable[[str], str]) -> None:
    dsn = fresh_role("3.4.0")
    execute(dsn, grants(schema="dbos", role=ROLE), f"REVOKE USAGE ON SCHEMA dbos FROM {ROLE}")
    with pytest.raises(PermissionDeniedError, match=f'role "{ROLE}" may not'):
        await read_once(as_user(dsn, ROLE))


@pytest.mark.parametrize("schema", ["nowhere", "public"])
def test_a_script_for_a_schema_without_the_table_fails_and_grants_nothing(
    schema: str, fresh_role: Callable[[str], str]
) -> None:
    dsn = fresh_role("3.4.0")
    with pytest.raises(psycopg.errors.RaiseException, match=f'no table workflow_status in schema "{schema}"') as raised:
        execute(dsn, grants(schema=schema, role=ROLE))
    assert "--schema" in (raised.value.diag.message_hint or "")
