"""Resident memory over an hour's worth of churn, in compressed time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import psycopg

from benchmarks.results import Row, Section
from benchmarks.servers import queue_depth
from harness.roles import reader_of
from harness.waiting import wait_until

if TYPE_CHECKING:
    from benchmarks.bench import Bench

EXECUTORS = 10_000
QUEUES = 500
LIVE_EXECUTORS = 1_000
LIVE_QUEUES = 100
WORKFLOWS_OF_AN_EXECUTOR = 5

AT_MOST_MB = 80.0
AT_MOST_GROWTH_PERCENT = 2.0

_VACUUM_EVERY = 50
_REFRESHES = re.compile(rb'^queue_depth_refreshes_total\{outcome="success"\} (\S+)', re.MULTILINE)

_EXPLANATION = f"""\
`queue-depth serve` through the 720 refreshes of an hour, as fast as they go, with scrapes and answers in between.
Over the hour {EXECUTORS:,} executor ids hold work, {LIVE_EXECUTORS} at a time with {WORKFLOWS_OF_AN_EXECUTOR} workflows
each, and {QUEUES} queues are registered, used and dropped, {LIVE_QUEUES} at a time.
At last all of them are there at once."""

_NOTES = (
    "Memory is VmRSS of the process, pages of shared libraries included, in MB of 10^6 bytes; `peak` is VmHWM.",
    "Growth compares the end with three quarters of the way.",
)


def run(bench: Bench) -> Section:
    """Watch the memory while work and queues come and go."""
    dsn = bench.empty_table().dsn
    total = bench.scale.refreshes_of_an_hour
    samples: dict[int, float] = {}
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        queue_depth(reader_of(dsn), refresh_seconds=0.01) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        churn = _Churn(connection)
        begin = _refreshes(client)
        done = turn = 0
        while done < total:
            churn.advance(done / total)
            if turn % _VACUUM_EVERY == 0:
                connection.execute("VACUUM (ANALYZE)")
            for path in ("/v1/queues", "/v1/pools", "/readyz?verbose"):
                client.get(path).raise_for_status()
            done = _refreshes(client) - begin
            samples[min(done, total)] = server.memory()
            turn += 1
        wait_until(lambda: _queues(client) == LIVE_QUEUES, 30, "only the living queues are known")
        peak = server.memory("VmHWM")
        churn.all_at_once()
        wait_until(lambda: _queues(client) == QUEUES, 30, "a refresh sees all of them")
        _refreshes(client)
        all_at_once = server.memory("VmHWM")
    return Section("Memory", _EXPLANATION, _rows(samples, total, peak, all_at_once), _NOTES)


class _Churn:
    """Executors and queues that come and go, numbered in the order of their coming."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._executors = self._queues = 0

    def advance(self, progress: float) -> None:
        """Bring them to where they are after that part of the hour."""
        executors = round(LIVE_EXECUTORS + (EXECUTORS - LIVE_EXECUTORS) * progress)
        queues = round(LIVE_QUEUES + (QUEUES - LIVE_QUEUES) * progress)
        self._set((executors - LIVE_EXECUTORS, executors), (queues - LIVE_QUEUES, queues))

    def all_at_once(self) -> None:
        """Bring back those that have gone."""
        self._executors = self._queues = 0
        self._connection.execute("DELETE FROM dbos.queues")
        self._connection.execute("DELETE FROM dbos.workflow_status")
        self._set((0, EXECUTORS), (0, QUEUES))

    def _set(self, executors: tuple[int, int], queues: tuple[int, int]) -> None:
        """Let exactly these live, from the first number to before the second."""
        with self._connection.transaction():
            self._connection.execute(
                "INSERT INTO dbos.queues (name, worker_concurrency)"
                " SELECT 'churn-' || i, 4 FROM generate_series(%s, %s - 1) AS i",
                (self._queues, queues[1]),
            )
            self._connection.execute("DELETE FROM dbos.queues WHERE split_part(name, '-', 2)::int < %s", (queues[0],))
            self._connection.execute(
                "DELETE FROM dbos.workflow_status WHERE split_part(executor_id, '-', 2)::int < %s",
                (executors[0],),
            )
            self._connection.execute(
                """
                INSERT INTO dbos.workflow_status (
                    workflow_uuid, status, name, queue_name, executor_id, application_version, started_at_epoch_ms
                )
                SELECT
                    gen_random_uuid()::text, 'PENDING', 'workflow', 'churn-' || %(newest)s - mod(i, %(queues)s),
                    'pod-' || i, 'v' || i / 1000, (extract(epoch FROM now()) * 1000)::bigint
                FROM generate_series(%(first)s, %(end)s - 1) AS i, generate_series(1, %(workflows)s)
                """,
                {
                    # The newer half, so that work is gone before its queue.
                    "newest": queues[1] - 1,
                    "queues": (queues[1] - queues[0]) // 2,
                    "first": self._executors,
                    "end": executors[1],
                    "workflows": WORKFLOWS_OF_AN_EXECUTOR,
                },
            )
        self._executors, self._queues = executors[1], queues[1]


def _refreshes(client: httpx.Client) -> int:
    found = _REFRESHES.search(client.get("/metrics").raise_for_status().content)
    assert found is not None
    return int(float(found[1]))


def _queues(client: httpx.Client) -> int:
    """How many queues are known, DBOS's internal one aside."""
    known = client.get("/v1/queues").raise_for_status().json()["queues"]
    return sum(queue["name"].startswith("churn-") for queue in known)


def _rows(samples: dict[int, float], total: int, peak: float, all_at_once: float) -> list[Row]:
    def at(part: float) -> float:
        """The sample nearest to that part of the hour."""
        return samples[min(samples, key=lambda done: abs(done - part * total))]

    hour = {"start": at(0), "quarter": at(0.25), "half": at(0.5), "three quarters": at(0.75), "end": at(1)}
    return [
        Row("peak resident memory", peak, "MB", at_most=AT_MOST_MB, also=hour),
        Row(
            "growth in the last quarter",
            max(0.0, (at(1) / at(0.75) - 1) * 100),
            "%",
            at_most=AT_MOST_GROWTH_PERCENT,
        ),
        Row(f"peak with {EXECUTORS:,} executors and {QUEUES} queues at once", all_at_once, "MB", at_most=AT_MOST_MB),
    ]
