"""Names in URLs, and names in order."""

import re
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from urllib.parse import unquote_to_bytes

from queue_depth.core.snapshot import Snapshot
from queue_depth.web.problems import ProblemError

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def decode(segment: bytes) -> str:
    """The name in one raw path segment: `%2F` is a slash of the name, `+` a plus, `..` two dots.

    Raises:
        ProblemError: The segment is not percent-encoded UTF-8.
    """
    if _BROKEN_ESCAPE.search(segment):
        raise ProblemError("bad_request", "A percent sign in a name must be written as %25 in the URL.")
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise ProblemError("bad_request", "The name in the URL is not percent-encoded UTF-8.") from None


class NamesInOrder:
    """The sorted names of a snapshot, page by page; taken from the snapshot once, as there may be very many.

    Args:
        names_of: Takes the names from a snapshot, sorted.
    """

    def __init__(self, names_of: Callable[[Snapshot], Sequence[str]]) -> None:
        self._names_of = names_of
        self._held: tuple[weakref.ref[Snapshot], Sequence[str]] | None = None

    def page(self, snapshot: Snapshot, *, after: str, limit: int) -> tuple[Sequence[str], str]:
        """Names that sort after `after`, and the name to ask the next page with; empty on the last page."""
        if self._held is None or self._held[0]() is not snapshot:
            self._held = weakref.ref(snapshot), self._names_of(snapshot)
        names = self._held[1]
        begin = bisect_right(names, after)
        page = names[begin : begin + limit]
        return page, page[-1] if begin + limit < len(names) else ""
