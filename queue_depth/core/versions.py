"""Application versions: which is the latest, and which are running."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from queue_depth.core.liveness import Liveness, LivenessView
from queue_depth.core.table import LatestVersion, WorkflowGroup


def same_application(one: str | None, other: str | None) -> bool:
    """DBOS's application filter: the same name, or no name on either side."""
    return one is None or other is None or one == other


class Pending(NamedTuple):
    """PENDING rows and what is known of the process that holds them.

    Attributes:
        group: The rows.
        liveness: Of their executor.
        live: How many of them run, as far as can be known: all on a process known to live, none on a dead one,
            and in doubt those dequeued within the window.
    """

    group: WorkflowGroup
    liveness: Liveness
    live: int


def pending_of(group: WorkflowGroup, view: LivenessView) -> Pending:
    """Join PENDING rows with what is known of their executor."""
    liveness = view.of(group.executor)
    match liveness:
        case Liveness.ALIVE | Liveness.TERMINATING:
            return Pending(group, liveness, group.count)
        case Liveness.DEAD:
            return Pending(group, liveness, 0)
        case Liveness.UNKNOWN:
            return Pending(group, liveness, group.recent)


@dataclass(frozen=True, slots=True)
class Versions:
    """What one snapshot says of application versions.

    Attributes:
        latest_of: The latest version of each application that has one of its own; under None those of all.
        latest_of_others: The latest version of every other application: the newest row without a name.
        running: Applications by version, of every executor with running work. An idle worker leaves no
            trace in the tables; it needs none, as it would have taken what waits for its version.
    """

    latest_of: Mapping[str | None, frozenset[str]]
    latest_of_others: frozenset[str]
    running: Mapping[str, frozenset[str | None]]

    def latest(self, application: str | None) -> frozenset[str]:
        """The latest version of an application; of each, for None; empty when no version is registered."""
        return self.latest_of.get(application, self.latest_of_others)

    def is_running(self, application: str | None, version: str) -> bool:
        """Whether some executor of this version holds running work."""
        return any(same_application(owner, application) for owner in self.running.get(version, ()))

    def takes(self, application: str | None, version: str | None, pinned: str | None) -> bool:
        """Whether pods would take a row of this version.

        Args:
            application: The row's application.
            version: The row's version; a row without one is taken by the latest version only.
            pinned: The version that the pods run; None: whatever runs, and the latest.
        """
        latest = self.latest(application)
        if pinned is not None:
            return version == pinned or (version is None and (not latest or pinned in latest))
        return version is None or not latest or version in latest or self.is_running(application, version)


def versions_of(pending: Iterable[Pending], latest_rows: Iterable[LatestVersion]) -> Versions:
    """Gather what a read says of versions.

    The latest version is that of the greatest `version_timestamp` among the application's own rows and those
    without a name (DBOS Python 2.27 and later, TypeScript 4.24, Go 0.19). A rollback does not make an old version
    the latest.
    """
    own: dict[str, LatestVersion] = {}
    nameless: LatestVersion | None = None
    for row in latest_rows:
        if row.application is None:
            nameless = _newer(row, nameless)
        else:
            own[row.application] = _newer(row, own.get(row.application))
    latest_of: dict[str | None, frozenset[str]] = {
        application: frozenset({_newer(row, nameless).version}) for application, row in own.items()
    }
    others = frozenset({nameless.version} if nameless else ())
    latest_of[None] = others.union(*latest_of.values())
    running: dict[str, set[str | None]] = defaultdict(set)
    for group, liveness, live in pending:
        # A process that is terminating takes no more.
        if live and group.version and liveness is not Liveness.TERMINATING:
            running[group.version].add(group.application)
    return Versions(latest_of, others, {version: frozenset(owners) for version, owners in running.items()})


def _newer(row: LatestVersion, other: LatestVersion | None) -> LatestVersion:
    return row if other is None or row.timestamp_ms >= other.timestamp_ms else other
