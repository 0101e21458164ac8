"""The same numbers as DBOS's documentation suggests to get them: list the queued workflows and count."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from dbos import DBOSClient

from benchmarks.refresh import Refresher, seconds_in_turns
from benchmarks.results import Row, Section, p50, p99
from benchmarks.workload import QUEUES
from harness.roles import reader_of

if TYPE_CHECKING:
    from benchmarks.bench import Bench

AT_LEAST_TIMES_FASTER = 20.0

_EXPLANATION = """\
DBOS's guide to Kubernetes has the application list a queue's workflows with the SDK and count them.
Here with DBOS for Python 3.4: `list_queued_workflows(queue_name=…)` for every queue, counted by queue and status,
on the same rows as a whole refresh of `queue-depth`. Both must come to the same numbers, or the benchmark fails."""

_NOTES = (
    "`without inputs` is the same call with `load_input=False, load_output=False`, which the guide does not use.",
    "The workflows have small inputs (about 150 bytes); the listing grows with them, a refresh does not read them.",
)


def run(bench: Bench) -> Section:
    """Measure both on a live table with the smaller number of workflows in flight."""
    return Section("Against the SDK", _EXPLANATION, asyncio.run(_rows(bench)), _NOTES)


async def _rows(bench: Bench) -> list[Row]:
    table = bench.table(bench.scale.finished)
    in_flight = bench.scale.in_flight[0]
    table.set_in_flight(in_flight)
    client = DBOSClient(system_database_url=table.dsn)
    try:
        async with Refresher(reader_of(table.dsn)) as refresher:
            depths = await refresher.refresh()
            ours = Counter({(name, "ENQUEUED"): depth.queue_length for name, depth in depths.items()})
            ours.update({(name, "PENDING"): depth.in_flight for name, depth in depths.items()})
            listed = _count(client, load=True)
            assert ours == listed, f"queue-depth: {ours}, SDK: {listed}"
            refresh, listing, without_inputs = await seconds_in_turns(
                bench.scale.sdk_pairs,
                refresher.refresh,
                partial(asyncio.to_thread, _count, client, load=True),
                partial(asyncio.to_thread, _count, client, load=False),
            )
    finally:
        client.destroy()
    return [
        Row(
            f"{in_flight:,} in flight: listing and counting ÷ refresh",
            p50(listing) / p50(refresh),
            "x",
            at_least=AT_LEAST_TIMES_FASTER,
            also={"refresh p50 ms": p50(refresh), "listing p50 ms": p50(listing), "listing p99 ms": p99(listing)},
        ),
        Row(
            f"{in_flight:,} in flight: listing without inputs ÷ refresh",
            p50(without_inputs) / p50(refresh),
            "x",
            also={"listing p50 ms": p50(without_inputs), "listing p99 ms": p99(without_inputs)},
        ),
    ]


def _count(client: DBOSClient, *, load: bool) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(QUEUES):
        name = f"queue-{number}"
        for workflow in client.list_queued_workflows(queue_name=name, load_input=load, load_output=load):
            counts[name, workflow.status] += 1
    return counts
