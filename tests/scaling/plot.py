"""The picture of a load: pods above what they do, over time, a row for each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from scaling.measures import busy_times, course, held, is_interrupted, lifetime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

    from scaling.observed import Loaded, Observation

WIDTH, ROW_HEIGHT, MARGIN = 11.0, 1.55, 0.6  # inches

EXISTING, BUSY, WANTED = "#cfd8dc", "#78909c", "#c62828"
RUNNING, WAITING, LOST = "#90caf9", "#ef6c00", "#c62828"

# Text as text, and the same bytes for the same numbers.
STYLE: dict[RcKeyType, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "scaling",
    "font.size": 8,
    "axes.spines.top": False,
}


def draw(loaded: Loaded, path: Path) -> None:
    """Write an SVG."""
    rows = len(loaded.observations)
    with mpl.rc_context(STYLE):
        height = MARGIN * 2 + ROW_HEIGHT * rows
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.subplots(rows, 2, sharex=True, sharey="col", squeeze=False)
        side, edge = MARGIN / WIDTH, MARGIN / height
        figure.subplots_adjust(left=side, right=1 - side, top=1 - edge, bottom=edge, wspace=0.1, hspace=0.15)
        for (pods, runs), seen in zip(axes, loaded.observations, strict=True):
            last = loaded.end if seen.over is None else seen.over
            _draw_pods(pods, seen, last)
            _draw_runs(runs, seen, last)
        for first, title in zip(axes[0], ("pods", "runs"), strict=True):
            first.set_title(title, loc="left")
            first.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
        for lowest in axes[-1]:
            lowest.set_xlabel("seconds")
            lowest.set_xlim(0, loaded.end)
            lowest.set_ylim(bottom=0)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_pods(axes: Axes, seen: Observation, end: float) -> None:
    lives = [life for pod in seen.pods if (life := lifetime(pod, end)) is not None]
    busy = [interval for intervals in busy_times(seen, end).values() for interval in intervals]
    _fill(axes, course(lives), end, EXISTING, "there")
    _fill(axes, course(busy), end, BUSY, "hold a run")
    times, counts = _steps(seen.replicas, end)
    axes.step(times, counts, where="post", color=WANTED, linewidth=1, label="wanted")
    axes.set_ylabel(seen.policy)


def _draw_runs(axes: Axes, seen: Observation, end: float) -> None:
    pods = {pod.name: pod for pod in seen.pods}
    running = [interval for run in seen.runs if (interval := held(run, pods, end)) is not None]
    waiting = [(run.enqueued, end if run.started is None else run.started) for run in seen.runs]
    lost = [pods[run.pod].ended or end for run in seen.runs if is_interrupted(run, pods) and run.pod in pods]
    _fill(axes, course(running), end, RUNNING, "run")
    times, counts = _steps(course(waiting), end)
    axes.step(times, counts, where="post", color=WAITING, linewidth=1, label="wait")
    axes.plot(lost, [0.0] * len(lost), "x", color=LOST, markersize=5, clip_on=False, label="interrupted")


def _fill(axes: Axes, changes: Sequence[tuple[float, int]], end: float, color: str, label: str) -> None:
    times, counts = _steps(changes, end)
    axes.stairs(counts[:-1], times, fill=True, color=color, linewidth=0, label=label)


def _steps(changes: Sequence[tuple[float, int]], end: float) -> tuple[list[float], list[int]]:
    """Return where a line changes and to what, from the beginning to the end."""
    full = [(0.0, 0), *((at, count) for at, count in changes if at < end)]
    full.append((end, full[-1][1]))
    return [at for at, _ in full], [count for _, count in full]
