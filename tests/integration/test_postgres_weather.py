"""Bad weather: the answer is right, or an error that says why; and the same reader recovers by itself."""

from __future__ import annotations

import asyncio
import resource
import time
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from harness.ports import HOST
from harness.postgres import PostgresServer
from harness.reading import read_once, reader_on, until_a_read_is_blocked
from harness.roles import reader_of
from harness.rows import PerRow, insert_application_version, insert_queue, insert_workflows
from harness.schemas import DatabaseFactory
from harness.waiting import wait_until, wait_until_async
from queue_depth.core.errors import DatabaseUnreachableError, PermissionDeniedError, ReadError, ReadTimeoutError
from queue_depth.core.limits import QueueOverride, RateLimit
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.postgres import StopMode
    from queue_depth.core.table import TableRead
    from queue_depth.postgres.reader import PostgresTableReader

READING = "SELECT FROM pg_stat_activity WHERE application_name = 'queue-depth'"


def counted(read: TableRead) -> int:
    return sum(group.count for group in read.groups)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be broken."""
    # What was committed before a kill must be there after it.
    with PostgresServer(18, settings={"synchronous_commit": "on"}) as server:
        yield server


@pytest.fixture
def database(server: PostgresServer) -> str:
    """URI of a database on it with five enqueued workflows."""
    dsn = DatabaseFactory(server).make()
    insert_workflows(dsn, count=5)
    return dsn


@contextmanager
def locked(dsn: str) -> Iterator[None]:
    """Hold the lock on the table of workflows that keeps every reader waiting."""
    with psycopg.connect(dsn) as holder:
        holder.execute("LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE")
        yield


async def recovered(reader: PostgresTableReader) -> TableRead:
    """Read until it works, as the poller does."""
    found: list[TableRead] = []

    async def works() -> bool:
        try:
            found.append(await reader.read())
        except DatabaseUnreachableError:
            return False
        return True

    await wait_until_async(works, message="the reader recovered")
    return found[0]


async def test_a_database_that_is_absent_at_start_is_read_once_it_is_there(server: PostgresServer) -> None:
    absent = server.dsn("later")
    async with reader_on(absent) as reader:
        with pytest.raises(DatabaseUnreachableError, match=r'database "later" does not exist'):
            await reader.read()
        made = DatabaseFactory(server).make()
        server.create_database("later", urlsplit(made).path[1:])
        assert counted(await reader.read()) == 0


async def test_a_refused_connection_says_so_and_the_server_is_found_when_it_comes_back(
    server: PostgresServer, database: str
) -> None:
    async with reader_on(database) as reader:
        server.stop()
        for _ in range(2):
            with pytest.raises(DatabaseUnreachableError, match=f"cannot use the database at {HOST}:{server.port}"):
                await reader.read()
        server.start()
        assert counted(await reader.read()) == 5


async def test_a_read_whose_session_is_killed_is_done_again(dbos_database: str) -> None:
    insert_workflows(dbos_database, count=5)
    async with reader_on(dbos_database) as reader:
        await reader.read()
        with psycopg.connect(dbos_database, autocommit=True) as watching:
            with locked(dbos_database):
                reading = asyncio.create_task(reader.read())
                await until_a_read_is_blocked(watching)
                watching.execute(f"SELECT pg_terminate_backend(pid) FROM ({READING.replace('FROM', 'pid FROM')}) AS s")
            assert counted(await reading) == 5
            wait_until(lambda: len(watching.execute(READING).fetchall()) == 1, message="one session is left")


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill -9"])
async def test_a_restart_of_the_database_is_survived(
    mode: StopMode | str, server: PostgresServer, database: str
) -> None:
    async with reader_on(database) as reader:
        assert counted(await reader.read()) == 5
        with locked_from_elsewhere(database), psycopg.connect(database, autocommit=True) as watching:
            reading = asyncio.create_task(reader.read())
            await until_a_read_is_blocked(watching)
            stop: Callable[[], None] = server.kill if mode == "kill -9" else lambda: server.stop(mode)  # type: ignore[arg-type]
            await asyncio.to_thread(stop)
        with pytest.raises(DatabaseUnreachableError):
            await reading
        server.start()
        assert counted(await recovered(reader)) == 5


@contextmanager
def locked_from_elsewhere(dsn: str) -> Iterator[None]:
    """Like `locked`, by a session that may die with the server."""
    holder = psycopg.connect(dsn)
    holder.execute("LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE")
    yield
    holder.close()


async def test_a_slow_database_is_an_error_in_time_and_leaves_no_transaction_behind(dbos_database: str) -> None:
    insert_workflows(dbos_database, count=5)
    async with reader_on(dbos_database, timeout_seconds=0.3) as reader:
        with locked(dbos_database):
            began = time.monotonic()
            with pytest.raises(ReadTimeoutError, match="QUEUE_DEPTH_STATEMENT_TIMEOUT_SECONDS"):
                await reader.read()
            assert time.monotonic() - began < 3
            with psycopg.connect(dbos_database, autocommit=True) as watching:
                wait_until(lambda: not watching.execute(READING).fetchall(), message="the reader's session is gone")
        assert counted(await reader.read()) == 5


async def test_a_frozen_server_is_an_error_in_time(server: PostgresServer, database: str) -> None:
    async with reader_on(database, timeout_seconds=0.5) as reader:
        await reader.read()
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(ReadTimeoutError):
                await reader.read()
            assert time.monotonic() - began < 3
        finally:
            server.resume()
        assert counted(await reader.read()) == 5


async def test_a_server_without_a_free_connection_says_so() -> None:
    limits = {"max_connections": "5", "superuser_reserved_connections": "1", "reserved_connections": "0"}
    with PostgresServer(18, settings=limits) as server:
        dsn = DatabaseFactory(server).make()
        role = reader_of(dsn)
        async with reader_on(role) as reader:
            taken = [psycopg.connect(role) for _ in range(4)]
            with pytest.raises(DatabaseUnreachableError, match=r"(connection slots|too many clients).*max_connections"):
                await reader.read()
            taken.pop().close()
            assert counted(await recovered(reader)) == 0
            assert counted(await reader.read()) == 0  # the connection is kept, and so is its slot
            for connection in taken:
                connection.close()


async def test_the_reader_follows_to_a_new_primary(server: PostgresServer, database: str) -> None:
    with server.make_standby() as standby:
        standby.wait_for_replay_of(server)
        name = urlsplit(database).path[1:]
        hosts = f"{HOST}:{server.port},{HOST}:{standby.port}"
        async with reader_on(f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write") as reader:
            assert counted(await reader.read()) == 5
            server.kill()
            with pytest.raises(DatabaseUnreachableError):  # one is down, the other not yet a primary
                await reader.read()
            standby.promote()
            insert_workflows(standby.dsn(name), count=2)
            read = await recovered(reader)
            assert (counted(read), read.lag_seconds) == (7, 0)


async def test_lag_of_a_standby_counts_as_age(server: PostgresServer, database: str) -> None:
    with server.make_standby() as standby:
        standby.wait_for_replay_of(server)
        dsn = standby.dsn(urlsplit(database).path[1:])
        async with reader_on(dsn) as reader:

            async def lag() -> float:
                return (await reader.read()).lag_seconds

            async def cannot_tell() -> bool:
                try:
                    await reader.read()
                except ReadError as error:
                    return "cannot tell how far it is behind" in str(error)
                return False

            assert await lag() == 0
            standby.execute("SELECT pg_wal_replay_pause()")
            insert_workflows(database, count=2)
            await wait_until_async(cannot_tell, message="a standby that has replayed no commit yet cannot tell")
            standby.execute("SELECT pg_wal_replay_resume()")
            standby.wait_for_replay_of(server)
            assert await lag() == 0

            standby.execute("SELECT pg_wal_replay_pause()")
            insert_workflows(database, count=3)
            first = await wait_until_async(lag, message="lag shows")
            read = await reader.read()
            assert read.lag_seconds > first
            assert counted(read) == 7
            # As old as its lag, by the one clock of this machine.
            assert abs(read.observed_at_ms + read.lag_seconds * 1000 - time.time() * 1000) < 5000
            standby.execute("SELECT pg_wal_replay_resume()")
            standby.wait_for_replay_of(server)
            read = await reader.read()
            assert counted(read) == 10
            assert 0 < read.lag_seconds < 5, (
                "a standby that was behind is believed the second time that it says it is not"
            )
            assert await lag() == 0

            # A standby whose primary is gone cannot know what it misses: its age grows from the last commit.
            server.kill()
            first = await wait_until_async(lag, message="the lost primary shows")
            assert await lag() > first
            standby.promote()
            assert await lag() == 0


async def test_a_standby_whose_primary_fell_silent_grows_old_before_its_receiver_gives_up(
    server: PostgresServer, database: str
) -> None:
    with server.make_standby({"wal_receiver_timeout": "10s"}) as standby:
        insert_workflows(database)
        standby.wait_for_replay_of(server)
        async with reader_on(standby.dsn(urlsplit(database).path[1:])) as reader:

            async def lag() -> float:
                return (await reader.read()).lag_seconds

            assert await lag() == 0
            server.pause()
            try:
                first = await wait_until_async(lag, message="the silence shows")
                assert standby.execute("SELECT count(pid) FROM pg_stat_wal_receiver") == [(1,)]
            finally:
                server.resume()
            assert first >= 6  # an idle primary may be silent for half the timeout

            async def no_lag() -> bool:
                return await lag() == 0

            await wait_until_async(no_lag, message="the primary is heard again")


async def test_a_standby_reads_with_rights_of_the_plain_role(server: PostgresServer, database: str) -> None:
    role = reader_of(database)
    with server.make_standby() as standby:
        standby.wait_for_replay_of(server)
        read = await read_once(role.replace(f":{server.port}", f":{standby.port}"))
        assert (counted(read), read.lag_seconds) == (5, 0)


async def test_a_role_without_rights_is_an_error_of_its_own_kind(dbos_database: str) -> None:
    with psycopg.connect(dbos_database, autocommit=True) as connection:
        connection.execute("CREATE ROLE nobody_at_all LOGIN")
    try:
        url = dbos_database.replace("postgres@", "nobody_at_all@")
        with pytest.raises(PermissionDeniedError, match='role "nobody_at_all" may not read'):
            await read_once(url)
    finally:
        with psycopg.connect(dbos_database, autocommit=True) as connection:
            connection.execute("DROP ROLE nobody_at_all")


async def test_two_applications_in_one_database_are_told_apart(dbos_database: str) -> None:
    for application, count in (("shop", 3), ("bank", 4)):
        insert_queue(dbos_database, f"{application}-mail", worker_concurrency=1, application_name=application)
        insert_application_version(dbos_database, f"{application}-1", application_name=application)
        insert = partial(
            insert_workflows, dbos_database, application_name=application, application_version=f"{application}-1"
        )
        insert(count=count, queue_name=f"{application}-mail")
        insert(status="PENDING", queue_name=None, executor_id="pod-1")
    pools = {name: Pool(name, application=name) for name in ("shop", "bank")}
    snapshot = Snapshot(await read_once(dbos_database), pools)
    shop, bank = snapshot.pool("shop"), snapshot.pool("bank")
    assert shop is not None
    assert bank is not None
    assert (shop.queue_length, bank.queue_length) == (3, 4)
    assert (shop.stranded, bank.stranded) == (0, 0)
    assert (shop.busy_workers, bank.busy_workers) == (1, 1)


@pytest.mark.parametrize("skew", [timedelta(hours=3), timedelta(minutes=-10)])
async def test_clocks_of_other_hosts_that_are_wrong_hide_no_work(skew: timedelta, dbos_database: str) -> None:
    insert_queue(dbos_database, worker_concurrency=2)
    insert = partial(insert_workflows, dbos_database, created_at=skew, updated_at=skew)
    insert(count=3)
    insert(count=2, status="PENDING", executor_id="pod-1", started_at=skew)
    insert(status="DELAYED", delay_until=skew)
    read = await read_once(dbos_database)
    depth = Snapshot(read).queue("queue")
    assert depth is not None
    assert (depth.queue_length, depth.in_flight, depth.busy_workers) == (3, 2, 1)
    due = skew < timedelta(0)
    assert (depth.delayed_due, depth.runnable) == (int(due), 3 + due)
    # By the database's clock alone: what is served as "now" is not moved by the rows.
    assert abs(read.observed_at_ms - time.time() * 1000) < 60_000


async def test_a_hundred_thousand_names_are_read(
    dbos_database: str, record_property: Callable[[str, object], None]
) -> None:
    names = 100_000
    insert_workflows(dbos_database, count=names, queue_name=PerRow("'queue number ' || i"))
    insert_queue(dbos_database, PerRow("'queue number ' || i"), count=names, worker_concurrency=3)
    insert_application_version(dbos_database, PerRow("'v' || i"), count=10_000)
    override = {"queue number 7": QueueOverride(frozenset({"rate_limit"}), rate_limit=RateLimit(2, 60))}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with reader_on(dbos_database, overrides=override, timeout_seconds=30) as reader:
        began = time.perf_counter()
        snapshot = Snapshot(await reader.read())
        record_property("seconds", time.perf_counter() - began)
        record_property("megabytes", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
    assert len(snapshot.queues) == names
    depth = snapshot.queue("queue number 7")
    assert depth is not None
    assert (depth.queue_length, depth.worker_concurrency, snapshot.read.starts) == (1, 3, ())


async def test_ten_thousand_enqueuers_make_one_group(dbos_database: str) -> None:
    insert_workflows(dbos_database, count=10_000, executor_id=PerRow("'api-' || i"))
    insert_workflows(dbos_database, count=20, status="PENDING", executor_id=PerRow("'pod-' || i % 2"))
    read = await read_once(dbos_database)
    assert sorted(group.count for group in read.groups) == [10, 10, 10_000]


async def test_an_error_in_the_server_that_nobody_foresaw_is_an_error_of_ours(dbos_database: str) -> None:
    insert_queue(dbos_database)
    with psycopg.connect(dbos_database, autocommit=True) as connection:
        connection.execute("ALTER TABLE dbos.workflow_status ALTER COLUMN updated_at TYPE text")
    with pytest.raises(ReadError) as raised:
        await read_once(dbos_database)
    assert raised.value.reason == "database_error"
    assert "answered" in str(raised.value)
