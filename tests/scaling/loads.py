"""What is to be done: jobs of random length at random moments, the same for every policy and every run of a seed.

A new load is a row of `LOADS`.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Job:
    """One workflow, enqueued `at` seconds after the load begins, that runs for `seconds`."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Lengths:
    """Log-normal lengths of runs, in seconds, with a cap."""

    median: float
    sigma: float
    cap: float

    def one(self, source: random.Random) -> float:
        """Return a length."""
        return round(min(self.cap, source.lognormvariate(math.log(self.median), self.sigma)), 2)


@dataclass(frozen=True, slots=True)
class Bursts:
    """Every so many seconds, the first at once, between `fewest` and `most` jobs in the same moment."""

    every: float
    times: int
    fewest: int
    most: int

    def moments(self, source: random.Random) -> Iterator[float]:
        """Return when jobs come."""
        for number in range(self.times):
            yield from itertools.repeat(number * self.every, source.randint(self.fewest, self.most))


@dataclass(frozen=True, slots=True)
class Poisson:
    """So many jobs a second on average, each whenever it likes."""

    per_second: float
    seconds: float

    def moments(self, source: random.Random) -> Iterator[float]:
        """Return when jobs come."""
        at = source.expovariate(self.per_second)
        while at < self.seconds:
            yield round(at, 2)
            at += source.expovariate(self.per_second)


@dataclass(frozen=True, slots=True)
class Load:
    """A load.

    Attributes:
        name: Part of the namespaces' names.
        about: What it is, in words.
        arrivals: When jobs come.
        lengths: How long they run.
    """

    name: str
    about: str
    arrivals: tuple[Bursts | Poisson, ...]
    lengths: Lengths

    def jobs(self, seed: int) -> list[Job]:
        """Return the jobs, in order."""
        source = random.Random(f"{self.name} {seed}")  # noqa: S311 - to be repeated, not to be kept secret
        moments = sorted(moment for arrival in self.arrivals for moment in arrival.moments(source))
        return [Job(moment, self.lengths.one(source)) for moment in moments]


def most_at_once(jobs: Iterable[Job], late: float = 0) -> int:
    """Return how many jobs run at once at most, if each is held for `late` seconds longer than it runs."""
    changes = [(job.at, 1) for job in jobs] + [(job.at + late + job.seconds, -1) for job in jobs]
    return max(itertools.accumulate(change for _, change in sorted(changes)), default=0)


LOADS = (
    Load(
        "bursts",
        "10 to 20 jobs each minute, five times; a run takes 15 s (median), two minutes at most.",
        (Bursts(every=60, times=5, fewest=10, most=20),),
        Lengths(median=15, sigma=1, cap=120),
    ),
    Load(
        "trickle",
        "A job every 3.3 s on average (Poisson), for five minutes; a run takes 15 s (median), two minutes at most.",
        (Poisson(per_second=0.3, seconds=300),),
        Lengths(median=15, sigma=1, cap=120),
    ),
    Load(
        "mixed",
        "4 to 8 jobs each minute, six times, over a job every 8.3 s on average (Poisson); "
        "a run takes 30 s (median), four minutes at most.",
        (Bursts(every=60, times=6, fewest=4, most=8), Poisson(per_second=0.12, seconds=330)),
        Lengths(median=30, sigma=1, cap=240),
    ),
)

SMALL_LOADS = (
    Load(
        "small",
        "Only to see that everything runs.",
        (Bursts(every=30, times=2, fewest=5, most=6),),
        Lengths(median=8, sigma=0.5, cap=15),
    ),
)
