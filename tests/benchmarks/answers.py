"""Answers per second, beside query-exporter."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bench import load_core, server_core
from benchmarks.refresh import BARE
from benchmarks.results import Row, Section
from benchmarks.servers import QUERY_EXPORTER, query_exporter, queue_depth
from harness.debian import program
from harness.roles import reader_of

if TYPE_CHECKING:
    from benchmarks.bench import Bench

CONNECTIONS = 20
AT_LEAST_TIMES_AS_MANY = 5.0
P99_AT_MOST_MS = 10.0

_EXPLANATION = f"""\
`GET /dbos-queue-depth/queue-1` of `queue-depth serve`, beside `GET /metrics` of query-exporter {QUERY_EXPORTER}
that exports the bare count of above from the same database.
Its query has an interval, so results are kept and a scrape reads them from memory; both look at the database every 5 s.
Each server has one core, the load generator (wrk, one thread, {CONNECTIONS} connections kept open) the other;
they are loaded in turns."""

_NOTES = (
    "KEDA reads one number per request either way: through Prometheus from an exporter, or from here directly.",
    "The p99 is of the worst turn. Both servers keep refreshing while they are loaded.",
)

# wrk's own output is for people.
_SCRIPT = """\
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('\\n{"answers": %d, "microseconds": %d, "p50_us": %f, "p99_us": %f, "errors": %d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class _Load:
    per_second: float
    p50_ms: float
    p99_ms: float


def run(bench: Bench) -> Section:
    """Load the servers in turns."""
    table = bench.table(bench.scale.finished)
    table.set_in_flight(bench.scale.in_flight[0])
    dsn = reader_of(table.dsn)
    with queue_depth(dsn, core=server_core()) as ours, query_exporter(dsn, BARE, core=server_core()) as theirs:
        urls = {
            "answers": f"{ours.url}/dbos-queue-depth/queue-1",
            "theirs": f"{theirs.url}/metrics",
            "metrics": f"{ours.url}/metrics",
        }
        loads: dict[str, list[_Load]] = {name: [] for name in urls}
        for _ in range(bench.scale.load_rounds):
            for name, url in urls.items():
                loads[name].append(_load(url, bench.scale.load_seconds))
    return Section("Answers", _EXPLANATION, _rows(loads), _NOTES)


def _rows(loads: dict[str, list[_Load]]) -> list[Row]:
    per_second = {name: statistics.median(load.per_second for load in turns) for name, turns in loads.items()}
    latency = {
        name: {
            "p50 ms": statistics.median(load.p50_ms for load in turns),
            "p99 ms": max(load.p99_ms for load in turns),
        }
        for name, turns in loads.items()
    }
    return [
        Row(
            "answers of queue-depth ÷ scrapes of query-exporter",
            per_second["answers"] / per_second["theirs"],
            "x",
            at_least=AT_LEAST_TIMES_AS_MANY,
        ),
        Row("answers of queue-depth", per_second["answers"], "/s", also=latency["answers"]),
        Row("answers of queue-depth, p99", latency["answers"]["p99 ms"], "ms", at_most=P99_AT_MOST_MS),
        Row("scrapes of query-exporter", per_second["theirs"], "/s", also=latency["theirs"]),
        Row("scrapes of queue-depth", per_second["metrics"], "/s", also=latency["metrics"]),
    ]


def _load(url: str, seconds: int) -> _Load:
    path, environment = program("wrk", "usr/bin/wrk", libraries=("libluajit",))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_SCRIPT)
        script.flush()
        generator = subprocess.Popen(
            [
                path,
                "--threads=1",
                f"--connections={CONNECTIONS}",
                f"--duration={seconds}s",
                f"--script={script.name}",
                url,
            ],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(generator.pid, {load_core()})
        output, _ = generator.communicate(timeout=seconds + 30)
    assert generator.returncode == 0, output
    told = json.loads(output.splitlines()[-1])
    assert not told["errors"], f"{url}: {output}"
    return _Load(told["answers"] / told["microseconds"] * 1e6, told["p50_us"] / 1000, told["p99_us"] / 1000)
