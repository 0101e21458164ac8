"""What is to be reached, and whether it was. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scaling.measures import measured, percentile, together
from scaling.policies import CHART, POLLING_SECONDS, REFRESH_SECONDS, SYNC_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scaling.measures import Measures
    from scaling.observed import Loaded

COST_FACTOR = 1.15


@dataclass(frozen=True, slots=True)
class Target:
    """A bound, and what was found.

    Attributes:
        what: What is bounded, in words.
        found: The finding.
        at_most: The bound.
        because: How the bound came about.
    """

    what: str
    found: float
    at_most: float
    because: str

    @property
    def passed(self) -> bool:
        """Whether the bound is kept."""
        return self.found <= self.at_most


def targets(loaded: Loaded) -> list[Target]:
    """Return what this chart must reach under a load; nothing if it did not take part."""
    found = measured(loaded)
    own = found.pop(CHART, None)
    if own is None:
        return []
    return [_wait(own), *([_interrupted(own, found), _cost(own, found)] if found else [])]


def overall(loads: Sequence[Loaded]) -> list[Target]:
    """Return what this chart must reach over all loads together: a run or two under one load are chance.

    Nothing if it, or a policy to hold it against, did not take part in all of them.
    """
    found = totals(loads)
    own = found.pop(CHART, None)
    return [_interrupted(own, found), _cost(own, found)] if own is not None and found else []


def totals(loads: Sequence[Loaded]) -> dict[str, Measures]:
    """Return the numbers over all loads of each policy that took part in every one."""
    found = list(map(measured, loads))
    return {
        name: together([one[name] for one in found])
        for name in (found[0] if found else {})
        if all(name in one for one in found)
    }


def _wait(own: Measures) -> Target:
    slowest = max(own.pod_starts, default=0.0)
    return Target(
        "longest wait, s",
        max(own.waits),
        POLLING_SECONDS + REFRESH_SECONDS + SYNC_SECONDS + slowest,
        f"a poll ({POLLING_SECONDS}) of numbers a refresh ({REFRESH_SECONDS}) old, an HPA sync ({SYNC_SECONDS}), "
        f"and the slowest start of a pod ({slowest:.1f})",
    )


def _interrupted(own: Measures, others: Mapping[str, Measures]) -> Target:
    least = min(others, key=lambda name: others[name].interrupted)
    return Target("runs interrupted", own.interrupted, others[least].interrupted, f"as few as `{least}`")


def _cost(own: Measures, others: Mapping[str, Measures]) -> Target:
    as_safe = {name: found for name, found in others.items() if found.interrupted <= own.interrupted}
    if not as_safe:
        because = "nobody interrupts as few, so nothing bounds it"
        return Target("pod-minutes", own.pod_minutes, own.pod_minutes, because)
    cheapest = min(as_safe, key=lambda name: as_safe[name].pod_minutes)
    least = as_safe[cheapest].pod_minutes
    return Target(
        "pod-minutes",
        own.pod_minutes,
        COST_FACTOR * least,
        f"{COST_FACTOR} times the {least:.1f} of `{cheapest}`, the cheapest that interrupts as few, "
        f"where runs wait up to {percentile(as_safe[cheapest].waits, 100):.1f} s",
    )
