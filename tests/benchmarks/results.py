"""What a benchmark found, held against its targets."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """One finding.

    Attributes:
        what: What was measured, in words.
        number: The finding.
        unit: Its unit.
        at_most: The target, where it is an upper bound.
        at_least: The target, where it is a lower bound.
        also: Numbers that explain it, by name and unit.
    """

    what: str
    number: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    also: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_target(self) -> bool:
        """Whether it can be missed; the others are there to compare with."""
        return self.at_most is not None or self.at_least is not None

    @property
    def passed(self) -> bool:
        """Whether it keeps every bound it has."""
        return (self.at_most is None or self.number <= self.at_most) and (
            self.at_least is None or self.number >= self.at_least
        )

    @property
    def verdict(self) -> str:
        """PASS or MISS; empty without a target."""
        return ("PASS" if self.passed else "MISS") if self.has_target else ""


@dataclass(frozen=True, slots=True)
class Section:
    """All findings of one benchmark, and what a reader must know to believe them."""

    title: str
    explanation: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()


def p50(seconds: Sequence[float]) -> float:
    """The median, in milliseconds."""
    return statistics.median(seconds) * 1000


def p99(seconds: Sequence[float]) -> float:
    """The 99th percentile, in milliseconds; of less than a hundred values the greatest."""
    return sorted(seconds)[len(seconds) * 99 // 100] * 1000
