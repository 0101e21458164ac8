"""One refresh beside a bare count of the same rows."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import asyncpg

from benchmarks.results import Row, Section, p50, p99
from benchmarks.statement_counts import StatementCounts
from harness.roles import READER, reader_of
from queue_depth.core.snapshot import Snapshot
from queue_depth.postgres.connection import ConnectionSettings
from queue_depth.postgres.reader import PostgresTableReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.bench import Bench
    from benchmarks.workload import Table
    from queue_depth.core.depth import PoolDepth

BARE = (
    "SELECT queue_name, status, count(*) FROM dbos.workflow_status"
    " WHERE status IN ('ENQUEUED', 'PENDING') GROUP BY queue_name, status"
)

AT_MOST_TIMES_BARE = 3.0
AT_MOST_GROWTH = 1.25

_EXPLANATION = f"""\
A refresh is one whole turn of the poller: the transaction with all its statements, the snapshot, and the numbers of
every queue.
Beside it, in turns, the least that any exporter must ask, by the same client library (asyncpg):

    {BARE}

The main rows are a live table: rows as DBOS's client enqueues them, half of them dequeued by updates, statistics fresh,
and no vacuum since. `unprepared` is the bare count as `queue-depth` sends its statements, with nothing prepared on the
server, so that a transaction-pooling PgBouncer may stand between; `prepared` is asyncpg's default, where parsing and
planning drop out."""

_NOTES = (
    (
        "Right after a VACUUM the bare count reads an index and touches no row at all. A refresh must still visit "
        "each row for its version, executor and times. A table with work in flight is in that state for moments only."
    ),
    "Buffers are pages of 8 kB, as pg_stat_statements counted them for all statements that were really sent.",
    (
        "Finished workflows were inserted as such, without the updates they would have gone through. "
        "Rows in flight lie closer together than after days of work."
    ),
)


def run(bench: Bench) -> Section:
    """Measure refreshes on live and vacuumed tables, and on a tenth of the finished workflows."""
    return Section("One refresh", _EXPLANATION, asyncio.run(_rows(bench)), _NOTES)


class Refresher:
    """Does what the poller does in one turn.

    Args:
        dsn: The database, as a role that may read it.
    """

    def __init__(self, dsn: str) -> None:
        self._reader = PostgresTableReader(
            ConnectionSettings(url=dsn, timeout_seconds=60), schema="dbos", overrides={}, window_seconds=1800
        )

    async def refresh(self) -> dict[str, PoolDepth]:
        """Refresh once; the numbers of every queue."""
        snapshot = Snapshot(await self._reader.read())
        depths = {name: snapshot.queue(name) for name in snapshot.queues}
        return {name: depth for name, depth in depths.items() if depth is not None}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._reader.close()


async def seconds_in_turns(rounds: int, *sides: Callable[[], Awaitable[object]]) -> list[list[float]]:
    """Time each side `rounds` times, in turns, after one turn that does not count."""
    # What the benchmarks' own imports left in memory shall not be walked while something is timed.
    gc.collect()
    gc.freeze()
    seconds: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds + 1):
        for side, measured in zip(sides, seconds, strict=True):
            begin = time.perf_counter()
            await side()
            if turn:
                measured.append(time.perf_counter() - begin)
    return seconds


@dataclass(frozen=True, slots=True)
class _Compared:
    refresh: list[float]
    unprepared: list[float]
    prepared: list[float]
    refresh_buffers: int
    bare_buffers: int

    def row(self, what: str, at_most: float | None) -> Row:
        return Row(
            f"{what}: refresh ÷ bare count, unprepared",
            p50(self.refresh) / p50(self.unprepared),
            "x",
            at_most=at_most,
            also={
                "refresh p50 ms": p50(self.refresh),
                "p99 ms": p99(self.refresh),
                "bare p50 ms": p50(self.unprepared),
                "bare p99 ms": p99(self.unprepared),
                "÷ prepared": p50(self.refresh) / p50(self.prepared),
                "prepared p50 ms": p50(self.prepared),
                "prepared p99 ms": p99(self.prepared),
                "buffers": self.refresh_buffers,
                "bare buffers": self.bare_buffers,
            },
        )


async def _rows(bench: Bench) -> list[Row]:
    table = bench.table(bench.scale.finished)
    rows = []
    for count in bench.scale.in_flight:
        table.set_in_flight(count)
        what = f"{count:,} in flight"
        rows.append((await _compare(bench, table)).row(f"{what}, live table", AT_MOST_TIMES_BARE))
        table.set_special_queues(on=True)
        rows.append((await _compare(bench, table)).row(f"{what}, a queue with a rate limit, one with partitions", None))
        table.set_special_queues(on=False)
        if count == bench.scale.in_flight[0]:
            rows.append(await _growth(bench, table, count))
        table.vacuum()
        rows.append((await _compare(bench, table)).row(f"{what}, just vacuumed", None))
    return rows


async def _compare(bench: Bench, table: Table) -> _Compared:
    dsn = reader_of(table.dsn)
    unprepared = await asyncpg.connect(dsn, statement_cache_size=0)
    prepared = await asyncpg.connect(dsn)
    counts = StatementCounts(table.dsn, READER)
    try:
        async with Refresher(dsn) as refresher:
            refresh, bare, bare_prepared = await seconds_in_turns(
                bench.scale.pairs, refresher.refresh, lambda: unprepared.fetch(BARE), lambda: prepared.fetch(BARE)
            )
            before = counts.sample().buffers
            await refresher.refresh()
            between = counts.sample().buffers
            await unprepared.fetch(BARE)
            after = counts.sample().buffers
            return _Compared(refresh, bare, bare_prepared, between - before, after - between)
    finally:
        counts.close()
        await unprepared.close()
        await prepared.close()


async def _growth(bench: Bench, large: Table, in_flight: int) -> Row:
    finished = bench.scale.finished
    small = bench.table(finished // 10)
    small.set_in_flight(in_flight)
    async with Refresher(reader_of(large.dsn)) as many, Refresher(reader_of(small.dsn)) as few:
        with_many, with_few = await seconds_in_turns(bench.scale.pairs, many.refresh, few.refresh)
    return Row(
        f"{in_flight:,} in flight, live table: {finished:,} finished ÷ {finished // 10:,} finished",
        p50(with_many) / p50(with_few),
        "x",
        at_most=AT_MOST_GROWTH,
        also={f"{finished:,} p50 ms": p50(with_many), f"{finished // 10:,} p50 ms": p50(with_few)},
    )
