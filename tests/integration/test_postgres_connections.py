"""How the reader reaches a database: pools, TLS, passwords, variables and URLs of every kind."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.pgbouncer import PgBouncer
from harness.ports import HOST, claim_port
from harness.postgres import SUPERUSER, PostgresServer
from harness.reading import read_once, reader_on, recorded_wire
from harness.roles import as_user, create_role, reader_of
from harness.rows import PerRow, insert_queue, insert_workflows
from harness.schemas import DatabaseFactory
from harness.tls import CertificateAuthority
from queue_depth.core.errors import AuthenticationFailedError, DatabaseUnreachableError, ReadError
from queue_depth.core.limits import QueueOverride, RateLimit
from queue_depth.postgres.connection import ConnectionSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from queue_depth.core.table import TableRead

ASK_FOR_PASSWORDS = [
    "local all all trust",
    f"host all {SUPERUSER} {HOST}/32 trust",
    f"host all all {HOST}/32 scram-sha-256",
]

EVERY_STATEMENT = {
    "rated": QueueOverride(frozenset({"rate_limit"}), rate_limit=RateLimit(5, 60)),
    "shards": QueueOverride(
        frozenset({"partition_concurrency", "partition_rate_limit"}),
        partition_concurrency=2,
        partition_rate_limit=RateLimit(7, 60),
    ),
}
"""Limits for which the reader sends all the statements it has."""


def counted(read: TableRead) -> int:
    return sum(group.count for group in read.groups)


def sessions(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(
            "SELECT pid, usename, state FROM pg_stat_activity WHERE application_name = 'queue-depth'"
        ).fetchall()


def end_sessions(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'queue-depth'"
        )


@pytest.fixture(scope="module")
def asking() -> Iterator[PostgresServer]:
    """A server that asks everyone but the superuser for a password."""
    with PostgresServer(18, hba=ASK_FOR_PASSWORDS) as server:
        yield server


@pytest.fixture
def asking_database(asking: PostgresServer) -> Iterator[str]:
    factory = DatabaseFactory(asking)
    dsn = factory.make()
    insert_workflows(dsn)
    yield dsn
    factory.drop_all()


async def test_several_exporters_share_a_transaction_pool_and_leave_nothing_in_it(
    postgres: PostgresServer, dbos_database: str
) -> None:
    insert_queue(dbos_database, "mail", worker_concurrency=3)
    insert_workflows(dbos_database, count=9, queue_name="shards", queue_partition_key=PerRow("'key-' || i"))
    database = urlsplit(dbos_database).path.removeprefix("/")
    with PgBouncer(postgres, pool_size=1) as bouncer:
        through = bouncer.dsn(database)
        async with reader_on(through, overrides=EVERY_STATEMENT) as one, reader_on(through) as other:
            for _ in range(20):
                assert [counted(await reader.read()) for reader in (one, other)] == [9, 9]
            with psycopg.connect(through, autocommit=True, prepare_threshold=None) as neighbour:
                assert neighbour.execute("SELECT * FROM pg_prepared_statements").fetchall() == []
                # What a transaction sets must not meet the next client of the same server connection.
                left = neighbour.execute(
                    "SELECT name, setting FROM pg_settings WHERE name IN"
                    " ('statement_timeout', 'enable_seqscan', 'enable_indexscan', 'enable_sort', 'jit') ORDER BY name"
                ).fetchall()
            with psycopg.connect(dbos_database) as fresh:
                assert (
                    left
                    == fresh.execute(
                        "SELECT name, setting FROM pg_settings WHERE name IN"
                        " ('statement_timeout', 'enable_seqscan', 'enable_indexscan', 'enable_sort', 'jit')"
                        " ORDER BY name"
                    ).fetchall()
                )
            assert bouncer.pool_modes()[database] == "transaction"


@pytest.mark.parametrize("pool_mode", ["transaction", "session"])
async def test_a_pool_without_prepared_statements_that_cleans_up_after_each_client_works(
    pool_mode: str, postgres: PostgresServer, dbos_database: str
) -> None:
    insert_workflows(dbos_database, count=4)
    # Debian's PgBouncer knows no max_prepared_statements, which is the same as 0.
    extra = {"server_reset_query": "DISCARD ALL", "server_reset_query_always": "1"}
    with PgBouncer(postgres, pool_mode=pool_mode, settings=extra) as bouncer:
        async with reader_on(bouncer.dsn(urlsplit(dbos_database).path.removeprefix("/"))) as reader:
            for _ in range(5):
                assert counted(await reader.read()) == 4


async def test_tls_is_verified_by_authority_and_by_name(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    ours, theirs = authority.write(tmp_path / "ours.pem"), CertificateAuthority().write(tmp_path / "theirs.pem")
    only_tls = ["local all all trust", f"hostssl all all {HOST}/32 trust"]
    with PostgresServer(18, tls=authority.certificate_for("localhost"), hba=only_tls) as server:
        made = urlsplit(server.create_database("tables"))
        with psycopg.connect(server.dsn("tables", by_socket=True), autocommit=True) as connection:
            connection.execute(
                b"CREATE SCHEMA dbos; CREATE TABLE dbos.workflow_status (status text, queue_name text,"
                b" executor_id text, application_version text, updated_at bigint, started_at_epoch_ms bigint)"
            )
        by_name = f"postgresql://postgres@localhost:{made.port}/tables?sslmode=verify-full&sslrootcert="
        by_address = by_name.replace("localhost", HOST)
        async with reader_on(f"{by_name}{ours}") as reader:
            assert counted(await reader.read()) == 0
            encrypted = server_side(
                server,
                "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'queue-depth'",
            )
            assert encrypted == [(True,)]
        for url, said in (
            (f"{by_name}{theirs}", "certificate verify failed"),
            (f"{by_address}{ours}", "IP address mismatch"),
            (f"{by_name}{tmp_path / 'none.pem'}", "look at the files that the database URL names, sslrootcert"),
        ):
            with pytest.raises(DatabaseUnreachableError, match=re.escape(said)):
                await read_once(url)
        with pytest.raises(AuthenticationFailedError, match="no encryption"):
            await read_once(f"postgresql://postgres@{HOST}:{made.port}/tables?sslmode=disable")


def server_side(server: PostgresServer, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.dsn(by_socket=True), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


async def test_a_rotated_password_is_taken_from_the_file(asking_database: str, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(reader_of(asking_database, role="rotated", password="first") + "\n")
    async with reader_on(url_file=file) as reader:
        assert counted(await reader.read()) == 1
        create_role(asking_database, "rotated", "second")
        assert counted(await reader.read()) == 1  # whoever is logged in stays
        end_sessions(asking_database)
        with pytest.raises(AuthenticationFailedError, match=r'refused the login.*"rotated"') as raised:
            await reader.read()
        assert "first" not in str(raised.value)
        file.write_text(as_user(asking_database, "rotated", "second"))
        assert counted(await reader.read()) == 1


async def test_a_file_that_is_absent_or_holds_no_url_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    async with reader_on(url_file=file) as reader:
        with pytest.raises(
            DatabaseUnreachableError, match=rf"cannot read the database URL from the file {file}: No such"
        ):
            await reader.read()
        for text in ("", "s3cr3t", "mysql://u:s3cr3t@h/d", "postgresql://u:s3/cr3t@h/d"):
            file.write_text(text)
            with pytest.raises(DatabaseUnreachableError, match=rf"the file {file} is not a PostgreSQL URL") as raised:
                await reader.read()
            assert "cr3t" not in str(raised.value)
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(DatabaseUnreachableError, match="UnicodeDecodeError"):
            await reader.read()


@pytest.mark.parametrize(
    "password", ["p@ss", "a/b", "a?b=c", "a#b", "a b", "100%25", "%zz", "a:b", "ü€", "'\"\\", "[x]", "a&b=c;d"]
)
async def test_a_password_of_any_characters_works(password: str, asking_database: str) -> None:
    dsn = reader_of(asking_database, role="special", password=password)
    assert counted(await read_once(dsn)) == 1


async def test_libpqs_variables_are_followed(asking_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = urlsplit(reader_of(asking_database, role="by_variables", password="p@ss"))
    for name, value in {
        "PGHOST": HOST,
        "PGPORT": str(parts.port),
        "PGUSER": "by_variables",
        "PGPASSWORD": "p@ss",
        "PGDATABASE": parts.path[1:],
        "PGSSLMODE": "prefer",
        "PGAPPNAME": "another",
    }.items():
        monkeypatch.setenv(name, value)
    async with reader_on() as reader:
        assert counted(await reader.read()) == 1
        assert [user for _, user, _ in sessions(asking_database)] == ["by_variables"]
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(AuthenticationFailedError, match=f"refused the login.*{HOST}|{HOST}.*refused the login"):
        async with reader_on() as reader:
            await reader.read()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
async def test_a_url_as_dbos_takes_it_works(scheme: str, dbos_database: str) -> None:
    insert_workflows(dbos_database)
    url = dbos_database.replace("postgresql", scheme, 1)
    url += (
        "?connect_timeout=10&application_name=mine&keepalives=1&keepalives_idle=30&sslmode=prefer"
        "&gssencmode=disable&target_session_attrs=any&channel_binding=prefer"
    )
    async with reader_on(url) as reader:
        assert counted(await reader.read()) == 1
        assert len(sessions(dbos_database)) == 1


async def test_options_for_the_server_in_a_url_reach_it(dbos_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = recorded_wire(monkeypatch)
    async with reader_on(f"{dbos_database}?options=-c%20work_mem%3D7MB") as reader:
        await reader.read()
        assert await wire.connections[0].fetchval("SHOW work_mem") == "7MB"


async def test_a_socket_in_a_url_works(postgres: PostgresServer, dbos_database: str) -> None:
    insert_workflows(dbos_database)
    assert counted(await read_once(postgres.dsn(dbos_database.rpartition("/")[2], by_socket=True))) == 1


async def test_at_most_two_connections_are_ever_open_and_none_stays_in_a_transaction(
    dbos_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queue_depth.postgres.reader._RECONNECT_SECONDS", 0.0)
    async with reader_on(dbos_database) as reader:
        for _ in range(10):
            await reader.read()
            found = sessions(dbos_database)
            assert 1 <= len(found) <= 2
            assert {state for *_, state in found} <= {"idle"}
    with psycopg.connect(dbos_database, autocommit=True) as watching:
        # Closing tells the server, which takes its time to end the session.
        watching.execute("SELECT pg_sleep(0.2)")
    assert sessions(dbos_database) == []


async def test_settings_end_with_the_transaction(dbos_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    insert_workflows(dbos_database, queue_name="shards", queue_partition_key="key")
    wire = recorded_wire(monkeypatch)
    names = (
        "statement_timeout",
        "enable_seqscan",
        "enable_indexscan",
        "enable_sort",
        "jit",
        "default_transaction_isolation",
    )
    async with reader_on(dbos_database, timeout_seconds=7, overrides=EVERY_STATEMENT) as reader:
        await reader.read()
        (connection,) = wire.connections
        after = [await connection.fetchval(f"SHOW {name}") for name in names]
        await connection.execute(next(query for query, _ in wire.sent if "BEGIN" in query))
        inside = [await connection.fetchval(f"SHOW {name}") for name in names]
        await connection.execute("ROLLBACK")
    assert after == ["0", "on", "on", "on", "on", "read committed"]
    assert inside == ["7s", "off", "off", "off", "off", "read committed"]


# Each URL is wrong in its own way; %s is the password.
BAD_URLS = [
    "postgresql://user:%s",
    "postgresql://user:%s/db",
    "postgresql://%s@",
    "postgresql://user:%s@/db",
    "postgresql://user:%s@[::1/db",
    "postgresql://user:%s@127.0.0.1:port/db",
    "postgresql://user:%s@127.0.0.1:1:2/db",
    "postgresql://user:%s@127.0.0.1:99999/db",
    "postgresql://user:%s@127.0.0.1:1/db?sslmode=no",
    "postgresql://user:%s@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/none",
    "postgresql://user:%s@127.0.0.1:1/db?target_session_attrs=no",
    "postgresql://user:%s@127.0.0.1:1,127.0.0.1/db",
    "postgresql://user@127.0.0.1:1/db?password=%s",
    "postgresql:///db?host=127.0.0.1&port=1&user=u&password=%s",
    "postgresql:user:%s@127.0.0.1:1/db",
    "postgresql+psycopg://user:%s@127.0.0.1:1/db",
    "postgresql ://user:%s@127.0.0.1:1/db",
    "user:%s@127.0.0.1:1/db",
    "host=127.0.0.1 port=1 password=%s",
    "jdbc:postgresql://127.0.0.1:1/db?user=u&password=%s",
    "%s",
    "postgresql://user:%s@127.0.0.1:1",
    "postgresql://user:x%s#y@127.0.0.1:1/db",
    "postgresql://user:x%s?y=@127.0.0.1:1/db",
]

passwords = st.builds(
    "{}s3cr3t-{}".format,
    st.text(st.sampled_from("ab1@:/?#[]%&=,; +'\"\\"), max_size=4),
    st.text(st.sampled_from(string.ascii_letters + string.digits + "@:/?#[]%&=,; +é€\n"), max_size=8),
)


async def error_of(url: str) -> str:
    try:
        await read_once(url)
    except ReadError as error:
        shown = f"{error} {error!r} {ConnectionSettings(url=url)!r} {ConnectionSettings(url=url).where()}"
        return shown.lower()
    pytest.fail("nobody listens on port 1")


@settings(max_examples=300, deadline=None)
@given(shape=st.sampled_from(BAD_URLS), password=passwords, escaped=st.booleans())
async def test_no_error_text_holds_the_password_of_any_url(shape: str, password: str, escaped: bool) -> None:  # noqa: FBT001
    if "@" not in shape and not escaped:
        # What follows an @, or a comma between hosts, is a host, whatever was meant.
        password = password.replace("@", "").replace(",", "")
    assert "s3cr3t" not in await error_of(shape % (quote(password, safe="") if escaped else password))


async def test_a_refused_login_shows_neither_password(asking_database: str) -> None:
    reader_of(asking_database, role="refused", password="right-s3cr3t")
    with pytest.raises(AuthenticationFailedError) as raised:
        await read_once(as_user(asking_database, "refused", "wrong-s3cr3t"))
    assert "s3cr3t" not in str(raised.value)
    assert "check user and password" in str(raised.value)


async def test_errors_say_where_the_database_was_looked_for(database_of: Callable[..., str]) -> None:
    claimed = claim_port()
    port = claimed.number
    with pytest.raises(DatabaseUnreachableError, match=f"at {HOST}:{port}"):
        await read_once(f"postgresql://u:p@{HOST}:{port}/db")
    claimed.release()
    with pytest.raises(DatabaseUnreachableError, match='database "absent" does not exist'):
        await read_once(database_of().rpartition("/")[0] + "/absent")


async def test_errors_say_how_to_mend_what_is_wrong_with_the_url(dbos_database: str) -> None:
    server = dbos_database.rpartition("/")[0]
    for url, kind, said in (
        (
            "postgresql://u:p@127.0.0.1:1/db",
            DatabaseUnreachableError,
            "check that it runs, the host and port .*NetworkPolicy",
        ),
        ("postgresql://u:p@no-such-host.invalid/db", DatabaseUnreachableError, "invalid: .*: check the host's name"),
        (f"{dbos_database}?sslmode=require", DatabaseUnreachableError, "has no TLS, .*sslmode=prefer"),
        (f"{server}/absent", DatabaseUnreachableError, '"absent" does not exist: .*name of the DBOS system database'),
        (f"{dbos_database}?foo=1", ReadError, 'parameter "foo".*: take .* out of the database URL'),
        (f"{dbos_database}?options=-c%20foo%3D1", ReadError, 'parameter "foo".*: take .* out of the database URL'),
        (f"{dbos_database}?wal_level=minimal", ReadError, 'parameter "wal_level".*: take .* out of the database URL'),
        (f"{dbos_database}?work_mem=much", ReadError, 'parameter "work_mem".*: take .* out of the database URL'),
    ):
        with pytest.raises(kind, match=said) as raised:
            await read_once(url)
        assert "Errno" not in str(raised.value)
