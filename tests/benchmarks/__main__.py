"""Run the benchmarks and write `docs/performance.md` and `docs/performance.json`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import answers, memory, refresh, report, sdk, statements
from benchmarks.bench import FULL, SERVER_SETTINGS, SMALL, Bench, Scale
from harness.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.results import Section

BENCHMARKS: dict[str, Callable[[Bench], Section]] = {
    "refresh": refresh.run,
    "sdk": sdk.run,
    "answers": answers.run,
    "statements": statements.run,
    "memory": memory.run,
}

FOLDER = Path(__file__).parents[2] / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and return the exit code: 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all, if none is given")
    parser.add_argument("--small", action="store_true", help="only see that they run; the numbers mean nothing")
    parser.add_argument("--output", type=Path, help="folder for the pages (docs, if all are run in full)")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    names = given.names or list(BENCHMARKS)
    complete = not given.small and set(names) == set(BENCHMARKS)

    sections, about = measured(names, SMALL if given.small else FULL)
    folder = given.output or (FOLDER if complete else None)
    if folder is not None:
        command = " ".join(["make bench", *(["--small"] if given.small else []), *given.names])
        (folder / "performance.md").write_text(report.markdown(sections, about, command), encoding="utf-8")
        (folder / "performance.json").write_text(report.as_json(sections, about, command), encoding="utf-8")
        print(f"written: {folder}/performance.md, {folder}/performance.json")
    return 0 if all(row.passed for section in sections.values() for row in section.rows) else 1


def measured(names: Sequence[str], scale: Scale) -> tuple[dict[str, Section], dict[str, str]]:
    """Run benchmarks on one server and say what it found; return that, and what the numbers depend on."""
    sections = {}
    with PostgresServer(18, settings=SERVER_SETTINGS) as server:
        ((version,),) = server.execute("SHOW server_version")
        about = report.machine(version)
        bench = Bench(scale, server)
        for name in names:
            begin = time.perf_counter()
            sections[name] = BENCHMARKS[name](bench)
            print(f"{name}, in {time.perf_counter() - begin:.0f} s")
            for row in sections[name].rows:
                print(f"  {report.line(row)}", flush=True)
    return sections, about


if __name__ == "__main__":
    sys.exit(main())
