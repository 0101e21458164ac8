"""`check`: what it finds of a database, and whether it says how to mend it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from harness.ports import HOST, claim_port
from harness.roles import as_user, create_role, reader_of
from harness.rows import insert_queue, insert_workflows
from queue_depth.core.pool import Pool
from queue_depth.postgres.check import Finding, check
from queue_depth.postgres.connection import ConnectionSettings

if TYPE_CHECKING:
    from collections.abc import Callable


async def findings(dsn: str, schema: str = "dbos", pools: dict[str, Pool] | None = None) -> list[Finding]:
    return await check(ConnectionSettings(url=dsn), schema=schema, overrides={}, pools=pools or {}, window_seconds=1800)


def about(found: list[Finding], subject: str, level: str) -> list[str]:
    return [finding.text for finding in found if (finding.subject, finding.level) == (subject, level)]


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def test_a_database_as_it_should_be_has_only_good_findings(dbos_database: str) -> None:
    insert_queue(dbos_database, worker_concurrency=4)
    insert_workflows(dbos_database, count=3)
    found = await findings(reader_of(dbos_database))
    assert {finding.level for finding in found} == {"ok"}
    assert [finding.subject for finding in found] == ["connection", "role", "schema", "indexes", "queues"]
    assert found[0].text.startswith("PostgreSQL 18.")
    assert "primary" in found[0].text
    assert '"queue_depth_reader"' in found[1].text


async def test_a_role_with_more_rights_than_needed_is_a_warning_for_each(dbos_database: str) -> None:
    (text,) = about(await findings(dbos_database), "role", "warning")
    assert "is a superuser and may change workflows and may read the inputs" in text
    assert "`queue-depth grants`" in text
    role = reader_of(dbos_database)
    for grant, said in (
        ("GRANT UPDATE ON dbos.workflow_status", "may change workflows"),
        ("GRANT SELECT ON dbos.workflow_input", "may read the inputs"),
        ("GRANT SELECT (inputs) ON dbos.workflow_status", "may read the inputs"),
    ):
        execute(dbos_database, f"{grant} TO queue_depth_reader")
        (text,) = about(await findings(role), "role", "warning")
        assert text.startswith(f'"queue_depth_reader" {said}')
        assert "superuser" not in text
        execute(dbos_database, f"{grant.replace('GRANT', 'REVOKE')} FROM queue_depth_reader")
        assert about(await findings(role), "role", "warning") == []


async def test_what_the_schema_lacks_is_a_warning_with_its_effect(database_of: Callable[..., str]) -> None:
    found = await findings(database_of("1.3.0"))
    texts = about(found, "schema", "warning")
    assert [text.partition(":")[0] for text in texts] == [
        "no table queues",
        "no table application_versions",
        "no workflow_status.application_name",
        "no workflow_status.queue_partition_key",
        "no workflow_status.delay_until_epoch_ms",
    ]
    (text,) = about(found, "indexes", "warning")
    assert "starts that have finished" in text


async def test_lost_indexes_are_a_warning(dbos_database: str) -> None:
    execute(dbos_database, "DROP INDEX dbos.idx_workflow_status_in_flight_v2")
    found = await findings(dbos_database)
    (text,) = about(found, "indexes", "warning")
    assert "restore DBOS's indexes" in text
    assert about(found, "indexes", "ok") == []


async def test_each_queue_that_needs_attention_is_named_with_the_mend(dbos_database: str) -> None:
    insert_queue(dbos_database, "unlimited")
    insert_workflows(dbos_database, queue_name="unlimited")
    insert_queue(dbos_database, "legacy", worker_concurrency=1, partition_queue=True)
    insert_queue(dbos_database, "shared", worker_concurrency=1)
    insert_workflows(dbos_database, status="PENDING", queue_name="shared", executor_id="local")
    insert_queue(dbos_database, "keyed", worker_concurrency=1, partition_concurrency=1)
    insert_workflows(dbos_database, count=3, queue_name="keyed", created_at=timedelta(hours=-1))
    texts = about(await findings(dbos_database), "queues", "warning")
    expected = {
        'not scalable: "unlimited"': "worker_concurrency",
        'in doubt: "legacy": partition_queue is TRUE': "set queues.<name>.partitioned",
        "executor ids shared, set DBOS__VMID to the pod's name": '"shared"',
        'stranded: "keyed"': "3 (no_partition_key)",
    }
    for start, mend in expected.items():
        (text,) = [text for text in texts if text.startswith(start)]
        assert mend in text


async def test_a_pool_that_names_what_is_not_there_is_a_warning(dbos_database: str) -> None:
    insert_queue(dbos_database, "emails", worker_concurrency=1)
    pool = Pool("workers", queues=frozenset({"emails", "emials"}))
    (text,) = about(await findings(dbos_database, pools={"workers": pool}), "queues", "warning")
    assert text.startswith('pool: "workers": queue "emials" is neither registered nor configured')


@pytest.mark.parametrize(
    ("spoil", "subject", "said"),
    [
        ("DROP TABLE dbos.workflow_status CASCADE", "schema", "there is no table"),
        ("ALTER TABLE dbos.workflow_status DROP COLUMN updated_at CASCADE", "schema", "has no column updated_at"),
    ],
)
async def test_a_schema_that_cannot_be_read_is_an_error(
    spoil: str, subject: str, said: str, dbos_database: str
) -> None:
    execute(dbos_database, spoil)
    found = await findings(dbos_database)
    assert (found[-1].level, found[-1].subject) == ("error", subject)
    assert said in found[-1].text


async def test_a_role_without_rights_is_an_error_that_names_the_script(dbos_database: str) -> None:
    create_role(dbos_database, "without_rights")
    found = await findings(as_user(dbos_database, "without_rights"))
    assert (found[-1].level, found[-1].subject) == ("error", "schema")
    assert 'role "without_rights" may not read' in found[-1].text
    assert "`queue-depth grants`" in found[-1].text


async def test_a_database_that_cannot_be_reached_is_the_only_finding() -> None:
    claimed = claim_port()
    (found,) = await findings(f"postgresql://u:s3cr3t@{HOST}:{claimed.number}/db")
    claimed.release()
    assert (found.level, found.subject) == ("error", "connection")
    assert f"{HOST}:{claimed.number}" in found.text
    assert "s3cr3t" not in found.text
