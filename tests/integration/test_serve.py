"""`queue-depth serve` and `check` on a real database: starting, serving, stopping, dying."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvloop

from harness.exporter import COMMAND, Exporter
from harness.ports import claim_port
from harness.rows import insert_workflows
from harness.waiting import wait_until, wait_until_async
from queue_depth import wiring
from queue_depth.core.liveness import NO_WITNESS, LivenessView
from queue_depth.poller import Poller
from queue_depth.settings.model import Listen
from queue_depth.store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.postgres import PostgresServer
    from queue_depth.core.table import TableRead

PASSWORD = "hunter2"
NO_DATABASE = {"QUEUE_DEPTH_DATABASE_URL": f"postgresql://u:{PASSWORD}@127.0.0.1:1/db"}

# From SIGTERM to the end; far below the 30 s that Kubernetes gives.
SOON = 4.0


@pytest.fixture
def environ(dbos_database: str) -> dict[str, str]:
    return {"QUEUE_DEPTH_DATABASE_URL": dbos_database, "QUEUE_DEPTH_REFRESH_SECONDS": "0.2"}


@pytest.fixture
def exporter(environ: dict[str, str]) -> Iterator[Exporter]:
    with Exporter(environ=environ) as running:
        running.wait_until_ready()
        yield running


def check(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "check", *arguments],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_serves_what_the_table_holds(exporter: Exporter, dbos_database: str) -> None:
    insert_workflows(dbos_database, count=3, queue_name="orders")
    insert_workflows(dbos_database, count=2, queue_name="orders", status="PENDING", executor_id="pod-1")
    answer = wait_until(lambda: orders_of(exporter), message="the rows are counted")
    assert answer is not None
    assert (answer["queue_length"], answer["in_flight"]) == (3, 2)
    assert "queue_depth_up 1.0" in exporter.get("/metrics").text
    assert exporter.get("/livez").status_code == 200


def orders_of(exporter: Exporter) -> dict[str, Any] | None:
    response = exporter.get("/dbos-queue-depth/orders")
    return response.json() if response.status_code == 200 and response.json()["in_flight"] else None


def test_an_answer_does_not_name_the_server_software(exporter: Exporter) -> None:
    headers = exporter.get("/livez").headers
    assert "server" not in headers
    assert "date" in headers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_soon_with_0_though_a_connection_is_kept_alive(
    exporter: Exporter, postgres: PostgresServer, number: signal.Signals
) -> None:
    with httpx.Client(base_url=exporter.url) as kept_alive, socket.create_connection(("127.0.0.1", exporter.port)):
        assert kept_alive.get("/livez").status_code == 200
        began = time.monotonic()
        assert exporter.stop(number) == 0
        assert time.monotonic() - began < SOON
    assert exporter.events[-1]["message"] == "stopped"
    assert {event["level"] for event in exporter.events} == {"info"}
    wait_until(lambda: not connections(postgres), message="the database's connection is closed")


def connections(postgres: PostgresServer) -> list[tuple[Any, ...]]:
    return postgres.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'queue-depth'")


def test_it_starts_without_a_database_and_serves_when_there_is_one(dbos_database: str, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(NO_DATABASE["QUEUE_DEPTH_DATABASE_URL"])
    with Exporter("--database-url-file", str(file), "--refresh-seconds", "0.1", environ={}) as exporter:
        wait_until(lambda: exporter.get("/readyz").status_code == 503)
        assert exporter.get("/livez").status_code == 200
        assert exporter.get("/dbos-queue-depth/q").status_code == 503
        file.write_text(dbos_database)
        exporter.wait_until_ready()
        assert exporter.stop() == 0
        states = [event["state"] for event in exporter.events if "state" in event]
        assert states == ["database_unreachable", "success"]
        assert PASSWORD not in exporter.log


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_password_is_logged_at_any_level(log_format: str) -> None:
    arguments = ("--log-level", "debug", "--log-format", log_format, "--refresh-seconds", "0.05")
    with Exporter(*arguments, environ=NO_DATABASE) as exporter:
        wait_until(lambda: "cannot read the workflow table" in exporter.log)
        exporter.get("/readyz?verbose")
        exporter.get("/metrics")
        assert exporter.stop() == 0
        assert PASSWORD not in exporter.log


def test_a_defect_in_the_poller_ends_it_with_1_and_one_line() -> None:
    program = f"""
import sys
from queue_depth.cli import main
from queue_depth.postgres.reader import PostgresTableReader
async def read(self):
    raise RuntimeError("a defect at postgresql://u:{PASSWORD}@h/db")
PostgresTableReader.read = read
sys.exit(main(["serve", "--listen", "127.0.0.1:0"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], **NO_DATABASE},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if '"critical"' in line]
    assert "RuntimeError: a defect at postgresql://u:***@h/db" in line
    assert PASSWORD not in done.stderr


def test_every_address_of_ipv6_takes_ipv4_too() -> None:
    with Exporter(environ=NO_DATABASE, listen="[::]:0") as exporter:
        for host in ("127.0.0.1", "[::1]"):
            assert httpx.get(f"http://{host}:{exporter.port}/livez").status_code == 200


def test_tokens_are_asked_for_when_a_file_is_given(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# first\nold-token\nnew-token\n")
    with Exporter("--tokens-file", str(file), environ=NO_DATABASE) as exporter:
        assert exporter.get("/dbos-queue-depth/q").status_code == 401
        for token in ("old-token", "new-token"):
            response = exporter.get("/dbos-queue-depth/q", headers={"Authorization": f"Bearer {token}"})
            assert response.status_code == 503
        assert any(event["message"].endswith("with bearer tokens") for event in exporter.events)
        assert "old-token" not in exporter.log


def test_an_open_exporter_says_so_and_warns_of_unknown_variables() -> None:
    environ = {**NO_DATABASE, "QUEUE_DEPTH_TOKEN_FILE": "/tokens", "QUEUE_DEPTH_PORT": "tcp://10.0.0.1:8080"}
    with Exporter(environ=environ) as exporter:
        assert any(event["message"].endswith("open to everyone who reaches it") for event in exporter.events)
        assert [event["message"] for event in exporter.events if event["level"] == "warning"] == [
            (
                "environment variable QUEUE_DEPTH_TOKEN_FILE: no such setting, ignored; "
                "did you mean QUEUE_DEPTH_TOKENS_FILE?"
            )
        ]


def test_queues_and_pools_of_the_file_are_answered(environ: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("queues: {a/b: {worker_concurrency: 4}}\npools: {my pool: {queues: [a/b]}}\n")
    with Exporter("--config", str(config), environ=environ) as exporter:
        exporter.wait_until_ready()
        assert exporter.get("/dbos-queue-depth/a%2Fb").json()["queue_length"] == 0
        assert exporter.get("/v1/pools/my%20pool").json()["wanted_replicas"] == 0


def test_the_connection_outlives_keda_which_keeps_it_idle_for_90_seconds() -> None:
    assert wiring.server_of(_unused).config.timeout_keep_alive >= 95


async def _unused(*_: object) -> None:
    raise AssertionError


class NoTable:
    async def read(self) -> TableRead:
        await asyncio.Event().wait()
        raise AssertionError


class Nobody:
    def view(self) -> LivenessView:
        return NO_WITNESS


def test_an_answer_under_way_is_finished_after_the_signal() -> None:
    uvloop.run(answer_slowly_and_stop())


async def answer_slowly_and_stop() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401, ARG001 - ASGI
        asked.set()
        await may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    poller = Poller(
        reader=NoTable(),
        witness=Nobody(),
        store=SnapshotStore(max_age_seconds=30, monotonic=time.monotonic, wall=time.time),
        pools={},
        refresh_seconds=5,
        observe_duration=print,
    )
    listener = wiring.listening(Listen("127.0.0.1", 0))
    port = listener.getsockname()[1]
    serving = asyncio.create_task(wiring.until_stopped(wiring.server_of(slow), listener, poller))
    async with httpx.AsyncClient() as client:
        asking = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/"))
        await asked.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await wait_until_async(partial(is_refused, port), message="no new connection is accepted")
        may_answer.set()
        assert (await asking).text == "ok"
    await asyncio.wait_for(serving, timeout=SOON)


async def is_refused(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


# check


def test_a_check_of_a_good_database_exits_with_0(dbos_database: str) -> None:
    done = check(QUEUE_DEPTH_DATABASE_URL=dbos_database)
    assert done.returncode == 0, done.stdout + done.stderr
    for subject in ("connection", "role", "schema", "queues"):
        assert f" {subject}: " in done.stdout
    assert "error " not in done.stdout


def test_a_check_takes_the_same_flags_as_serve(dbos_database: str) -> None:
    done = check("--schema", "nowhere", QUEUE_DEPTH_DATABASE_URL=dbos_database)
    assert done.returncode == 1
    assert "error   schema: " in done.stdout
    assert "nowhere" in done.stdout


def test_a_check_reads_libpq_variables(postgres: PostgresServer, dbos_database: str) -> None:
    name = dbos_database.rpartition("/")[2]
    done = check(PGHOST="127.0.0.1", PGPORT=str(postgres.port), PGUSER="postgres", PGDATABASE=name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_port_that_was_just_left_can_be_taken_again() -> None:
    claimed = claim_port()
    try:
        for _ in range(2):
            with Exporter(environ=NO_DATABASE, listen=f"127.0.0.1:{claimed.number}") as exporter:
                assert exporter.get("/livez").status_code == 200
                assert exporter.stop() == 0
    finally:
        claimed.release()
