"""The probes' answers, and the explanation behind `/readyz?verbose`. Plain text: kubelet and people read it."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from queue_depth.core.advice import Topic, advice
from queue_depth.core.snapshot import Snapshot
from queue_depth.store import NoFreshSnapshotError, SnapshotStore

_READ_SECONDS = 90.0
"""Far longer than one read may take: three times the statement timeout, which is at most 20 s."""
_MOST_LINES = 20


def liveness(store: SnapshotStore, refresh_seconds: float) -> tuple[bool, str]:
    """Whether the poller turns, and a line that says so. The database's state plays no part."""
    since, limit = store.seconds_since_attempt(), refresh_seconds + _READ_SECONDS
    if since <= limit:
        return True, "ok\n"
    return False, f"the last refresh began {since:.0f} s ago, the limit is {limit:g} s: restart this process\n"


def readiness(store: SnapshotStore) -> tuple[bool, str]:
    """Whether a refresh ever succeeded, and a line that says so.

    An old snapshot is no reason to leave the Service: every replica reads the same database, and a 503 with a reason
    tells KEDA more than a refused connection.
    """
    if store.has_served_data:
        return True, "ok\n"
    return False, f"not ready: {_why_not_fresh(store)}\n"


def explanation(store: SnapshotStore) -> tuple[bool, str]:
    """Readiness, and everything that makes a number less exact or an answer an error, a line each."""
    ready, _ = readiness(store)
    return ready, "".join(f"{line}\n" for line in _explain(store))


def _explain(store: SnapshotStore) -> Iterator[str]:
    yield f"ready: {'yes' if store.has_served_data else 'no'}"
    yield f"serving numbers: {_why_not_fresh(store) or 'yes'}"
    if store.error is not None:
        failures = store.consecutive_failures
        yield f"last refresh: failed with {store.error.reason}, {failures} in a row: {_one_line(str(store.error))}"
    elif store.has_served_data:
        yield "last refresh: succeeded"
    snapshot = store.snapshot
    if snapshot is not None:
        yield from _explain_snapshot(snapshot)


def _explain_snapshot(snapshot: Snapshot) -> Iterator[str]:
    read = snapshot.read
    observed_at = datetime.fromtimestamp(read.observed_at_ms / 1000, UTC).isoformat(timespec="seconds")
    yield f"snapshot: read at {observed_at} by the database's clock, {len(snapshot.queues)} queues"
    if read.lag_seconds:
        yield f"replication lag: {read.lag_seconds:.1f} s"
    yield from _some("schema", (_one_line(str(note)) for note in read.notes))
    pieces: dict[Topic, list[str]] = {topic: [] for topic in Topic}
    for piece in advice(snapshot):
        pieces[piece.topic].append(_one_line(piece.text))
    for topic, texts in pieces.items():
        yield from _some(topic.value, texts)


def _some(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """A bounded number of lines, and how many more there are."""
    more = 0
    for count, line in enumerate(lines):
        if count < _MOST_LINES:
            yield f"{heading}: {line}"
        else:
            more += 1
    if more:
        yield f"{heading}: and {more} more"


def _why_not_fresh(store: SnapshotStore) -> str:
    try:
        store.fresh()
    except NoFreshSnapshotError as error:
        return _one_line(str(error))
    return ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
