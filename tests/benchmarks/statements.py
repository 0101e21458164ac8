"""Statements at the database, with one and with many ScaledObjects asking."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from benchmarks.results import Row, Section
from benchmarks.servers import queue_depth
from benchmarks.statement_counts import Sample, StatementCounts
from benchmarks.workload import QUEUES
from harness.roles import READER, reader_of
from harness.waiting import wait_until_async

if TYPE_CHECKING:
    from benchmarks.bench import Bench

REFRESH_SECONDS = 1.0
FASTER = 5.0
"""A second here is five: refreshes are every 5 s by default."""

ASKING_SECONDS = 15.0 / 2 / FASTER
"""KEDA asks every 15 s, and the HPA through KEDA every 15 s."""

_EXPLANATION = f"""\
`queue-depth serve`, refreshing every {REFRESH_SECONDS:g} s, while ScaledObjects ask: each on a connection of its own,
as often as KEDA (every 15 s) and the HPA (every 15 s) together, in time compressed by {FASTER:g}.
PostgreSQL counts the statements of the exporter's role (pg_stat_statements) over the same number of refreshes;
BEGIN, SET and COMMIT count as well."""

_NOTES = ("Once a minute a refresh looks at columns and indexes again, which is three statements more.",)


@dataclass(frozen=True, slots=True)
class _Watched:
    statements: int
    refreshes: int
    seconds: float
    answers: int

    @property
    def per_minute(self) -> float:
        """At the default of a refresh every 5 s."""
        return self.statements / self.refreshes * 60 / (REFRESH_SECONDS * FASTER)


def run(bench: Bench) -> Section:
    """Count with one ScaledObject and with many."""
    few, many = asyncio.run(_both(bench))
    return Section("Load on the database", _EXPLANATION, _rows(bench.scale.scaled_objects, few, many), _NOTES)


async def _both(bench: Bench) -> tuple[_Watched, _Watched]:
    dsn = bench.table(bench.scale.finished).dsn
    counts = StatementCounts(dsn, READER)
    try:
        watched = []
        for scaled_objects in (1, bench.scale.scaled_objects):
            counts.reset()
            with queue_depth(reader_of(dsn), refresh_seconds=REFRESH_SECONDS) as server:
                watched.append(await _watch(server.url, counts, scaled_objects, bench.scale.refreshes_watched))
    finally:
        counts.close()
    few, many = watched
    return few, many


async def _watch(url: str, counts: StatementCounts, scaled_objects: int, refreshes: int) -> _Watched:
    answers = 0

    async def ask(number: int) -> None:
        nonlocal answers
        async with httpx.AsyncClient(base_url=url) as client:
            await asyncio.sleep(ASKING_SECONDS * number / scaled_objects)
            while True:
                answer = await client.get(f"/dbos-queue-depth/queue-{number % QUEUES}")
                answer.raise_for_status()
                answers += 1
                await asyncio.sleep(ASKING_SECONDS)

    async def sample_after(ended: int) -> Sample:
        async def sample() -> Sample | None:
            now = counts.sample()
            return now if now.is_between_refreshes and now.ended >= ended else None

        found = await wait_until_async(sample, 10 + 3 * refreshes * REFRESH_SECONDS, f"{ended} refreshes")
        assert found is not None
        return found

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(ask(number)) for number in range(scaled_objects)]
        # The refresh under way may be the first, which looks at the schema as well.
        first = await sample_after(counts.sample().ended + 1)
        begin = time.perf_counter()
        answers = 0
        last = await sample_after(first.ended + refreshes)
        watched = _Watched(
            last.statements - first.statements, last.ended - first.ended, time.perf_counter() - begin, answers
        )
        for task in asking:
            task.cancel()
    return watched


def _rows(scaled_objects: int, few: _Watched, many: _Watched) -> list[Row]:
    def also(watched: _Watched) -> dict[str, float]:
        return {
            "statements": watched.statements,
            "refreshes": watched.refreshes,
            "seconds": watched.seconds,
            "answers": watched.answers,
        }

    return [
        Row("1 ScaledObject: statements per minute, refreshing every 5 s", few.per_minute, "", also=also(few)),
        Row(
            f"{scaled_objects} ScaledObjects: statements per minute, refreshing every 5 s",
            many.per_minute,
            "",
            at_most=few.per_minute,
            at_least=few.per_minute,
            also=also(many),
        ),
    ]
