"""The last good snapshot, its age, and how the attempts since went."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from queue_depth.core.errors import ReadError
from queue_depth.core.snapshot import Snapshot


class NoFreshSnapshotError(Exception):
    """There is no snapshot young enough to answer from.

    Attributes:
        reason: `not_ready` before the first snapshot, else `stale`; or the reason of the last failed read.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Published:
    snapshot: Snapshot
    read_at: float


@dataclass(frozen=True, slots=True)
class Fresh:
    """A snapshot young enough to answer from.

    Attributes:
        snapshot: The numbers.
        age_seconds: How long ago they were true, replication lag included.
    """

    snapshot: Snapshot
    age_seconds: float


class SnapshotStore:
    """Holds what the poller last learnt.

    Publishing is one assignment: readers, in other threads too, never see half a refresh.

    Args:
        max_age_seconds: Age beyond which a snapshot is no longer served.
        monotonic: A clock that never jumps, in seconds; ages are measured with it.
        wall: Unix time in seconds, only for the timestamps in metrics.
    """

    def __init__(self, *, max_age_seconds: float, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self._max_age = max_age_seconds
        self._monotonic = monotonic
        self._wall = wall
        self._published: _Published | None = None
        self._started_at = monotonic()
        self.error: ReadError | None = None
        """Why the last attempt failed; None when it succeeded or none was made."""
        self.consecutive_failures = 0
        self.outcomes: Counter[str] = Counter()
        """Attempts by outcome: `success` or a reason of `errors.REASONS`."""
        self.last_attempt_timestamp: float | None = None
        self.last_success_timestamp: float | None = None
        self.last_attempt_monotonic = self._started_at
        """When the poller last turned, by the monotonic clock."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The last good snapshot at any age, for explanations only."""
        published = self._published
        return published.snapshot if published else None

    @property
    def has_served_data(self) -> bool:
        """Whether a refresh ever succeeded."""
        return self._published is not None

    def attempt_started(self) -> None:
        """The poller begins a refresh."""
        self.last_attempt_timestamp = self._wall()
        self.last_attempt_monotonic = self._monotonic()

    def published(self, snapshot: Snapshot) -> None:
        """The refresh that began last succeeded. Its age counts from its beginning."""
        self._published = _Published(snapshot, self.last_attempt_monotonic)
        self.last_success_timestamp = self._wall()
        self.error = None
        self.consecutive_failures = 0
        self.outcomes["success"] += 1

    def failed(self, error: ReadError) -> None:
        """The refresh that began last failed; the last good snapshot stays and ages."""
        self.error = error
        self.consecutive_failures += 1
        self.outcomes[error.reason] += 1

    def seconds_since_attempt(self) -> float:
        """Seconds since the poller last turned."""
        return self._monotonic() - self.last_attempt_monotonic

    def fresh(self) -> Fresh:
        """The last good snapshot.

        Raises:
            NoFreshSnapshotError: There is none, or it is older than the limit; the text names the cause.
        """
        error = self.error
        cause = f": {error}" if error else ""
        published = self._published
        if published is None:
            reason = error.reason if error else "not_ready"
            raise NoFreshSnapshotError(reason, f"no refresh has succeeded yet{cause}")
        lag = published.snapshot.read.lag_seconds
        age = self._monotonic() - published.read_at + lag
        if age > self._max_age:
            reason = error.reason if error else "stale"
            lagging = f" ({lag:.1f} s of it replication lag)" if lag >= 1 else ""
            text = f"the last snapshot is {age:.1f} s old{lagging}, the limit is {self._max_age:g} s{cause}"
            raise NoFreshSnapshotError(reason, text)
        return Fresh(published.snapshot, age)
