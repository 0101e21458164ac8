"""What one policy made of a load, in numbers. Pure: from what was observed, and nothing else."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scaling.observed import Loaded, Observation, Pod, Run

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measures:
    """The numbers. Times are in seconds, pod-minutes in minutes.

    Attributes:
        interrupted: Runs whose pod's container ended while they ran, or that were started more than once.
        never_started: Jobs that no pod took.
        waits: Seconds from enqueued to started of each job, shortest first; to the end of observation of one that
            was never started.
        pod_minutes: All pods, from their container's start until nothing is left of them.
        idle_pod_minutes: Of these, those in which a pod holds no run: starting and ending included.
        scale_ups: Changes of the wanted replicas upwards.
        scale_downs: And downwards.
        most_pods: Most pods at once.
        pod_starts: Seconds from a pod's making, during the load, until DBOS is ready in it, shortest first.
    """

    interrupted: int
    never_started: int
    waits: tuple[float, ...]
    pod_minutes: float
    idle_pod_minutes: float
    scale_ups: int
    scale_downs: int
    most_pods: int
    pod_starts: tuple[float, ...]


def measure(observation: Observation, end: float) -> Measures:
    """Return the numbers of one policy.

    Args:
        observation: What was seen.
        end: When the load's observation ended; the policy's own count ends when it was over.
    """
    last = end if observation.over is None else observation.over
    pods = {pod.name: pod for pod in observation.pods}
    lives = [life for pod in observation.pods if (life := lifetime(pod, last)) is not None]
    total = _length(lives)
    busy = sum(map(_length, busy_times(observation, last).values()))
    counts = [count for _, count in observation.replicas]
    steps = [after - before for before, after in itertools.pairwise(counts)]
    return Measures(
        interrupted=sum(is_interrupted(run, pods) for run in observation.runs),
        never_started=sum(run.started is None for run in observation.runs),
        waits=tuple(sorted(waited(run, last) for run in observation.runs)),
        pod_minutes=total / 60,
        idle_pod_minutes=(total - busy) / 60,
        scale_ups=sum(step > 0 for step in steps),
        scale_downs=sum(step < 0 for step in steps),
        most_pods=max((count for _, count in course(lives)), default=0),
        pod_starts=tuple(
            sorted(pod.launched - pod.made for pod in observation.pods if pod.launched is not None and pod.made >= 0)
        ),
    )


def measured(loaded: Loaded) -> dict[str, Measures]:
    """Return the numbers of each policy under one load."""
    return {seen.policy: measure(seen, loaded.end) for seen in loaded.observations}


def together(found: Sequence[Measures]) -> Measures:
    """Return the numbers of one policy under several loads as those of one."""
    return Measures(
        interrupted=sum(one.interrupted for one in found),
        never_started=sum(one.never_started for one in found),
        waits=tuple(sorted(wait for one in found for wait in one.waits)),
        pod_minutes=sum(one.pod_minutes for one in found),
        idle_pod_minutes=sum(one.idle_pod_minutes for one in found),
        scale_ups=sum(one.scale_ups for one in found),
        scale_downs=sum(one.scale_downs for one in found),
        most_pods=max(one.most_pods for one in found),
        pod_starts=tuple(sorted(start for one in found for start in one.pod_starts)),
    )


def is_interrupted(run: Run, pods: dict[str, Pod]) -> bool:
    """Whether a run lost its pod. Nobody takes it up again here: its row stays PENDING, as its pod's name is gone."""
    pod = pods.get(run.pod)
    return run.attempts > 1 or (
        run.started is not None and run.ended is None and pod is not None and pod.ended is not None
    )


def waited(run: Run, end: float) -> float:
    """Return how long a job waited for its first start, an interrupted one too."""
    return (end if run.started is None else run.started) - run.enqueued


def held(run: Run, pods: dict[str, Pod], end: float) -> Interval | None:
    """Return from when to when a run was held by its pod; None if it never started."""
    if run.started is None:
        return None
    pod = pods.get(run.pod)
    lost = end if pod is None or pod.ended is None else pod.ended
    return run.started, lost if run.ended is None else run.ended


def lifetime(pod: Pod, end: float) -> Interval | None:
    """Return from when to when a pod cost something, within the load; None if it did not."""
    begin, last = max(0.0, pod.started), min(end, end if pod.gone is None else pod.gone)
    return (begin, last) if begin < last else None


def busy_times(observation: Observation, end: float) -> dict[str, list[Interval]]:
    """Return for each pod when it held any run, while it was there."""
    pods = {pod.name: pod for pod in observation.pods}
    found: dict[str, list[Interval]] = {}
    for name, pod in pods.items():
        if (life := lifetime(pod, end)) is not None:
            own = (held(run, pods, end) for run in observation.runs if run.pod == name)
            found[name] = union(clipped(interval, life) for interval in own)
    return found


def clipped(interval: Interval | None, bounds: Interval) -> Interval | None:
    """Return what of an interval lies within others' bounds."""
    if interval is None:
        return None
    begin, end = max(interval[0], bounds[0]), min(interval[1], bounds[1])
    return (begin, end) if begin < end else None


def union(intervals: Iterable[Interval | None]) -> list[Interval]:
    """Return the intervals that cover the same, without overlaps."""
    found: list[Interval] = []
    for begin, end in sorted(interval for interval in intervals if interval is not None):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def course(intervals: Iterable[Interval]) -> list[tuple[float, int]]:
    """Return how many intervals there are at once, from each change on."""
    changes = sorted([(begin, 1) for begin, _ in intervals] + [(end, -1) for _, end in intervals])
    return list(dict(itertools.accumulate(changes, lambda state, change: (change[0], state[1] + change[1]))).items())


def percentile(ordered: Sequence[float], per_cent: float) -> float:
    """Return the smallest value that so many per cent do not exceed; 0 of nothing."""
    return ordered[math.ceil(len(ordered) * per_cent / 100) - 1] if ordered else 0.0


def median(ordered: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return statistics.median(ordered) if ordered else 0.0


def _length(intervals: Iterable[Interval]) -> float:
    return sum(end - begin for begin, end in intervals)
