"""Bounded labels: so many values keep their name, the others share one."""

import heapq
import re
from collections.abc import Callable, Iterable

OTHER = "_other"
"""The value that all values beyond the limit share."""

_LOOKS_LIKE_OTHER = re.compile(r"_+other")


class BoundedLabel:
    """The values of one label in one snapshot.

    Which values keep their name depends on the snapshot alone, so several replicas agree, and a value keeps its
    name as long as no value that goes before it comes.

    Args:
        values: All values; repetitions do not matter.
        rank: Values of a lower rank go first; within a rank they go by name.
        limit: How many values keep their name.
    """

    def __init__(self, values: Iterable[str], rank: Callable[[str], int], limit: int) -> None:
        distinct = set(values)
        named = heapq.nsmallest(limit, distinct, key=lambda value: (rank(value), value))
        self._named = {value: _shown(value) for value in named}
        self.named = tuple(named)
        """The values that keep their name, as they stand in the database."""
        self.folded = frozenset(distinct.difference(named))
        """The values that share `_other`."""

    def of(self, value: str) -> str:
        """The label's value for a value from the database."""
        return self._named.get(value, OTHER)


def _shown(value: str) -> str:
    """The value itself; what is really called `_other` gets one underscore more, and so does what it might then be."""
    return f"_{value}" if _LOOKS_LIKE_OTHER.fullmatch(value) else value
