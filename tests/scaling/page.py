"""The pages `docs/scaling.md`, `docs/scaling.json` and `docs/scaling-LOAD.svg`.

`python -m scaling.page` writes the others anew from `docs/scaling.json`, which holds all that was observed.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from scaling import plot
from scaling.measures import measured, median, percentile
from scaling.observed import Record
from scaling.policies import (
    COOLDOWN_SECONDS,
    MAX_PODS,
    POLLING_SECONDS,
    REFRESH_SECONDS,
    STABILIZATION_SECONDS,
    SYNC_SECONDS,
    WORKER_CONCURRENCY,
)
from scaling.targets import overall, targets, totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scaling.measures import Measures
    from scaling.observed import Loaded
    from scaling.targets import Target

DOCS = Path(__file__).parents[2] / "docs"
NAME = "scaling"

RECORD = TypeAdapter(Record)

COLUMNS = (
    "policy",
    "runs interrupted",
    "wait p50 s",
    "p95 s",
    "max s",
    "pod-minutes",
    "÷ packed",
    "idle",
    "most pods",
    "scaled up",
    "down",
    "pod start p50 s",
    "max s",
)

TEMPLATE = Template(Path(__file__).with_name("page.md.template").read_text(encoding="utf-8"))
ALIGNED = ("---", *["---:"] * (len(COLUMNS) - 1))


def write(record: Record, folder: Path) -> None:
    """Write all of it into a folder."""
    document = {
        "measures": {
            loaded.load: {policy: asdict(found) for policy, found in measured(loaded).items()}
            for loaded in record.loads
        },
        "targets": {
            loaded.load: [{**asdict(target), "passed": target.passed} for target in targets(loaded)]
            for loaded in record.loads
        },
        **RECORD.dump_python(record, mode="json"),
    }
    (folder / f"{NAME}.json").write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / f"{NAME}.md").write_text(markdown(record), encoding="utf-8")
    for loaded in record.loads:
        plot.draw(loaded, folder / f"{NAME}-{loaded.load}.svg")


def read(path: Path) -> Record:
    """Read what `write` wrote."""
    return RECORD.validate_json(path.read_bytes())


def all_passed(record: Record) -> bool:
    """Whether every target is reached under every load."""
    return all(target.passed for loaded in record.loads for target in targets(loaded))


def markdown(record: Record) -> str:
    """Return the page."""
    policies = {seen.policy: seen.about for loaded in record.loads for seen in loaded.observations}
    return TEMPLATE.substitute(
        date=record.date[:10],
        seed=record.seed,
        machine="\n".join(f"| {name} | {value} |" for name, value in record.machine.items()),
        policies="\n".join(f"| `{name}` | {about} |" for name, about in policies.items()),
        loads="\n".join(map(_section, record.loads)),
        together=_together(record.loads),
        concurrency=WORKER_CONCURRENCY,
        max_pods=MAX_PODS,
        polling=POLLING_SECONDS,
        sync=SYNC_SECONDS,
        refresh=REFRESH_SECONDS,
        cooldown=COOLDOWN_SECONDS,
        stabilization=STABILIZATION_SECONDS,
    )


def terminal(loaded: Loaded) -> str:
    """Return a load's numbers as text."""
    rows = [COLUMNS, *_rows(loaded)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines += [remark.strip() for remark in _remarks(loaded)]
    lines += [f"{_verdict(one)} {one.what}: {_number(one.found)} ≤ {_bound(one)}" for one in targets(loaded)]
    return "\n".join(lines)


def _section(loaded: Loaded) -> str:
    jobs = len(loaded.observations[0].runs)
    packed = _packed(loaded)
    rows = [COLUMNS, ALIGNED, *_rows(loaded, code="`")]
    return "\n".join(
        [
            f"## {loaded.load.capitalize()}\n",
            loaded.about,
            f"{jobs} jobs, {packed:.1f} pod-minutes packed perfectly, in-flight window {loaded.window:.0f} s.\n",
            *map(_line, rows),
            *_remarks(loaded),
            "",
            *_held(targets(loaded)),
            f"\n![{loaded.load}: pods and runs over time]({NAME}-{loaded.load}.svg)\n",
        ]
    )


def _together(loads: Sequence[Loaded]) -> str:
    packed = sum(map(_packed, loads))
    rows = [COLUMNS, ALIGNED, *(_row(f"`{name}`", found, packed) for name, found in totals(loads).items())]
    return "\n".join([*map(_line, rows), "", *_held(overall(loads))])


def _held(found: Sequence[Target]) -> Iterable[str]:
    if found:
        yield from (_line(("of `queue-depth`", "found", "at most", "")), _line(("---", "---:", "---", "---")))
    for one in found:
        yield _line((one.what, _number(one.found), _bound(one), _verdict(one)))


def _remarks(loaded: Loaded) -> Iterable[str]:
    for seen in loaded.observations:
        if seen.over is None:
            yield f"\n`{seen.policy}` was not through after {loaded.end:.0f} s, and its pods are counted up to there."
        if seen.failures:
            yield f"\nKEDA reported {seen.failures} errors of `{seen.policy}`."


def _rows(loaded: Loaded, code: str = "") -> list[tuple[str, ...]]:
    return [_row(f"{code}{policy}{code}", found, _packed(loaded)) for policy, found in measured(loaded).items()]


def _row(policy: str, found: Measures, packed: float) -> tuple[str, ...]:
    never = f", {found.never_started} never started" if found.never_started else ""
    return (
        policy,
        f"{found.interrupted}{never}",
        f"{percentile(found.waits, 50):.1f}",
        f"{percentile(found.waits, 95):.1f}",
        f"{percentile(found.waits, 100):.1f}",
        f"{found.pod_minutes:.1f}",
        f"{found.pod_minutes / packed:.2f}",
        f"{found.idle_pod_minutes:.1f}",
        f"{found.most_pods}",
        f"{found.scale_ups}",
        f"{found.scale_downs}",
        f"{median(found.pod_starts):.1f}",
        f"{max(found.pod_starts, default=0.0):.1f}",
    )


def _packed(loaded: Loaded) -> float:
    return loaded.work / 60 / WORKER_CONCURRENCY


def _bound(target: Target) -> str:
    return f"{_number(target.at_most)}: {target.because}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def _verdict(target: Target) -> str:
    return "PASS" if target.passed else "MISS"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    write(read(DOCS / f"{NAME}.json"), DOCS)
