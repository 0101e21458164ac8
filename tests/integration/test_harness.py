"""The harness itself: the servers, schemas and tools that the other tests build on are what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from harness import rows
from harness.dbos_versions import VERSIONS, launch_schema
from harness.dump import columns
from harness.pgbouncer import PgBouncer
from harness.postgres import PostgresServer
from harness.postgres_binaries import MAJORS
from harness.promtool import check_metrics
from harness.roles import reader_of
from harness.schemas import ALL_SCHEMAS, DUMPS, DatabaseFactory, load_dump
from harness.tls import CertificateAuthority
from harness.waiting import wait_until, wait_until_async

if TYPE_CHECKING:
    from collections.abc import Callable

# The first schema that has each thing, from the history of DBOS' migrations; the others lack or have it by order.
FIRST_PYTHON_WITH = {
    ("workflow_status", "started_at_epoch_ms"): "1.3.0",
    ("workflow_status", "queue_partition_key"): "2.2.0",
    ("application_versions", "version_timestamp"): "2.14.0",
    ("workflow_status", "delay_until_epoch_ms"): "2.16.0",
    ("queues", "worker_concurrency"): "2.20.0",
    ("workflow_status", "rate_limited"): "2.20.0",
    ("workflow_status", "completed_at"): "2.27.0",
    ("workflow_status", "application_name"): "2.30.0",
    ("queues", "application_name"): "2.30.0",
    ("application_versions", "application_name"): "2.30.0",
    ("queues", "partition_concurrency"): "2.31.1",
    ("workflow_input", "workflow_uuid"): "3.0.0",
    ("workflow_status", "creator_xid"): "3.4.0",
}

LACKING_IN_DUMP = {
    "go-1.3.0": {
        ("queues", "partition_concurrency"),
        ("workflow_input", "workflow_uuid"),
        ("workflow_status", "creator_xid"),
    },
    "go-1.8.0": set(),
    "java-1.1.0-m6": {
        ("workflow_status", "application_name"),
        ("queues", "application_name"),
        ("application_versions", "application_name"),
        ("queues", "partition_concurrency"),
        ("workflow_input", "workflow_uuid"),
        ("workflow_status", "creator_xid"),
    },
    "typescript-2.10.24": set(FIRST_PYTHON_WITH) - {("workflow_status", "started_at_epoch_ms")},
    "typescript-4.16.7": {
        ("queues", "worker_concurrency"),
        ("workflow_status", "rate_limited"),
        ("workflow_status", "completed_at"),
        ("workflow_status", "application_name"),
        ("queues", "application_name"),
        ("application_versions", "application_name"),
        ("queues", "partition_concurrency"),
        ("workflow_input", "workflow_uuid"),
        ("workflow_status", "creator_xid"),
    },
    "typescript-5.3.0": set(),
}


def lacking(dsn: str) -> set[tuple[str, str]]:
    return {(table, column) for table, column in FIRST_PYTHON_WITH if column not in columns(dsn, table)}


@pytest.mark.parametrize("major", MAJORS)
def test_every_postgresql_major_starts_and_comes_back_after_a_kill(major: int) -> None:
    with PostgresServer(major) as server:
        assert server.execute("SHOW server_version")[0][0].startswith(f"{major}.")
        server.create_database("kept")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            server.execute("SELECT 1")
        server.start()
        with psycopg.connect(server.dsn("kept", by_socket=True)) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("kept",)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_dbos_version_makes_the_columns_it_is_known_for(version: str, database_of: Callable[..., str]) -> None:
    order = VERSIONS.index
    expected = {thing for thing, first in FIRST_PYTHON_WITH.items() if order(first) > order(version)}
    assert lacking(database_of(version)) == expected


@pytest.mark.parametrize("major", [MAJORS[0], MAJORS[-1]])
def test_each_recorded_schema_loads_and_has_the_columns_its_sdk_is_known_for(major: int) -> None:
    with PostgresServer(major) as server:
        found = {}
        for name in DUMPS:
            dsn = server.create_database(name)
            load_dump(name, dsn)
            found[name] = lacking(dsn)
    assert found == LACKING_IN_DUMP


@pytest.mark.parametrize("source", ALL_SCHEMAS)
def test_one_call_inserts_rows_into_any_schema(source: str, database_of: Callable[..., str]) -> None:
    dsn = database_of(source)
    rows.insert_workflows(
        dsn,
        count=40,
        status="PENDING",
        executor_id=rows.PerRow("'executor-' || i % 20"),
        application_name="app",
        created_at=timedelta(minutes=-5),
        queue_partition_key="key",
        rate_limited=True,
    )
    with psycopg.connect(dsn) as connection:
        counted = connection.execute(
            "SELECT count(*), count(DISTINCT executor_id), count(started_at_epoch_ms),"
            " bool_and(created_at BETWEEN started_at_epoch_ms - 310000 AND started_at_epoch_ms - 290000)"
            " FROM dbos.workflow_status"
        ).fetchone()
    assert counted == (40, 20, 40, True)


def test_queues_and_application_versions_are_inserted_as_dbos_writes_them(dbos_database: str) -> None:
    rows.insert_queue(dbos_database, "plain", worker_concurrency=3)
    rows.insert_queue(dbos_database, "partitioned", partition_concurrency=1, application_name="app")
    rows.insert_application_version(dbos_database, "v1", version_timestamp=timedelta(days=-1))
    rows.insert_application_version(dbos_database, "v2")
    with psycopg.connect(dbos_database) as connection:
        queues = connection.execute("SELECT name, partition_queue FROM dbos.queues ORDER BY name").fetchall()
        latest = connection.execute(
            "SELECT version_name FROM dbos.application_versions ORDER BY version_timestamp DESC LIMIT 1"
        ).fetchone()
    assert queues == [("partitioned", True), ("plain", False)]
    assert latest == ("v2",)


def test_a_row_in_a_table_that_a_version_lacks_is_refused(database_of: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match=r"no table dbos\.queues"):
        rows.insert_queue(database_of("2.2.0"))


def test_a_queue_registered_by_dbos_itself_is_a_row(empty_database: str) -> None:
    launch_schema("3.4.0", empty_database, schema="My Schema", queue="mail")
    with psycopg.connect(empty_database) as connection:
        found = connection.execute('SELECT name, worker_concurrency FROM "My Schema".queues').fetchall()
    assert found == [("mail", 2)]


@pytest.mark.parametrize("source", ALL_SCHEMAS)
def test_the_reading_role_sees_what_it_needs_of_any_schema_and_no_inputs(
    source: str, database_of: Callable[..., str]
) -> None:
    dsn = database_of(source)
    rows.insert_workflows(dsn)
    with psycopg.connect(reader_of(dsn), autocommit=True) as connection:
        found = connection.execute("SELECT status, queue_name FROM dbos.workflow_status").fetchall()
        assert found == [("ENQUEUED", "queue")]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT output FROM dbos.workflow_status")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM dbos.workflow_status")


@pytest.mark.parametrize("older", ["2.2.0", "2.29.0", "typescript-5.3.0"])
def test_a_newer_dbos_upgrades_the_copy_of_an_older_schema(older: str, database_of: Callable[..., str]) -> None:
    dsn = database_of(older)
    rows.insert_workflows(dsn)
    launch_schema("3.4.0", dsn)
    assert lacking(dsn) == set()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM dbos.workflow_status").fetchone() == (1,)


def test_databases_are_fresh_copies(database_of: Callable[..., str]) -> None:
    first = database_of()
    rows.insert_workflows(first)
    with psycopg.connect(database_of()) as connection:
        assert connection.execute("SELECT count(*) FROM dbos.workflow_status").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM dbos.application_versions").fetchone() == (0,)


def test_dropping_databases_ends_their_sessions(postgres: PostgresServer) -> None:
    factory = DatabaseFactory(postgres)
    with psycopg.connect(factory.empty(), autocommit=True) as connection:
        factory.drop_all()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_pgbouncer_shares_server_connections_between_transactions(postgres: PostgresServer) -> None:
    with PgBouncer(postgres, pool_size=1) as bouncer:
        with (
            psycopg.connect(bouncer.dsn(), autocommit=True) as one,
            psycopg.connect(bouncer.dsn(), autocommit=True) as other,
        ):
            backends = {connection.execute("SELECT pg_backend_pid()").fetchone() for connection in (one, other)}
        assert len(backends) == 1
        assert bouncer.pool_modes()["postgres"] == "transaction"


def test_a_pgbouncer_that_does_not_start_leaves_nothing_behind(postgres: PostgresServer) -> None:
    bouncer = PgBouncer(postgres, settings={"pool_mode": "none at all"})
    with pytest.raises(AssertionError, match="pool_mode"), bouncer:
        pytest.fail("it started")
    assert not bouncer.folder.exists()
    assert bouncer._process is None


def test_tls_is_verified_against_our_own_authority(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    stranger = CertificateAuthority().write(tmp_path / "stranger.pem")
    ours = authority.write(tmp_path / "ours.pem")
    only_tls = ["local all all trust", "hostssl all all 127.0.0.1/32 trust"]
    with PostgresServer(18, tls=authority.certificate_for(), hba=only_tls) as server:
        verified = server.dsn(sslmode="verify-full", sslrootcert=str(ours))
        with psycopg.connect(verified) as connection:
            found = connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
            assert found == (True,)
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(server.dsn(sslmode="verify-full", sslrootcert=str(stranger)))
        with pytest.raises(psycopg.OperationalError, match="no encryption"):
            psycopg.connect(server.dsn(sslmode="disable"))


@pytest.mark.parametrize("major", [MAJORS[0], MAJORS[-1]])
def test_a_standby_follows_and_is_promoted_when_the_primary_dies(major: int) -> None:
    with PostgresServer(major) as primary, primary.make_standby() as standby:
        primary.create_database("followed")
        standby.wait_for_replay_of(primary)
        assert standby.execute("SELECT pg_is_in_recovery(), current_database()", "followed") == [(True, "followed")]
        primary.kill()
        standby.promote()
        standby.execute("CREATE TABLE written (id int)", "followed")
        assert standby.execute("SELECT pg_is_in_recovery()") == [(False,)]


def test_a_server_does_not_outlive_a_test_process_that_is_killed() -> None:
    script = (
        "import os, signal; from harness.postgres import PostgresServer; server = PostgresServer(18);"
        "server.start(); print(server.folder, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    folder = Path(killed.stdout.strip())
    assert killed.returncode == -signal.SIGKILL
    wait_until(lambda: not folder.exists(), message="the watchdog removed the cluster")


def test_a_password_can_be_required_and_rotated() -> None:
    hba = ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256"]
    with PostgresServer(18, hba=hba, settings={"max_connections": "7"}) as server:
        by_socket = server.dsn(by_socket=True)
        with psycopg.connect(by_socket, autocommit=True) as connection:
            connection.execute("CREATE ROLE reader LOGIN PASSWORD 'first /?'")
            assert connection.execute("SHOW max_connections").fetchone() == ("7",)
            psycopg.connect(server.dsn(user="reader", password="first /?")).close()
            connection.execute("ALTER ROLE reader PASSWORD 'second'")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.dsn(user="reader", password="first /?"))


def test_a_paused_server_answers_only_when_it_is_resumed() -> None:
    with PostgresServer(18) as server:
        server.pause()
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            psycopg.connect(server.dsn(connect_timeout="2"))
        server.resume()
        assert server.execute("SELECT 1") == [(1,)]


def test_promtool_finds_no_fault_with_good_metrics_and_names_the_fault_of_bad_ones() -> None:
    good = "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\njobs_total 1\n"
    assert check_metrics(good) == ""
    assert "no help text" in check_metrics(good.replace("# HELP jobs_total Jobs.\n", ""))
    assert "unknown metric type" in check_metrics(good.replace("counter", "count"))


async def test_waiting_ends_with_the_answer_or_says_what_did_not_happen() -> None:
    answers = iter([0, 0, 7])
    assert wait_until(lambda: next(answers)) == 7
    with pytest.raises(TimeoutError, match=r"the queue drained did not come true.*last answer was 0"):
        wait_until(lambda: 0, timeout=0.05, message="the queue drained")

    async def eventually() -> int:
        return next(more)

    async def never() -> bool:
        return False

    more = iter([0, 8])
    assert await wait_until_async(eventually) == 8
    with pytest.raises(TimeoutError, match=r"\.never did not come true"):
        await wait_until_async(never, timeout=0.05)
