"""Whether an executor's process still runs. Nothing in DBOS's tables says so: there is no heartbeat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

SHARED_EXECUTOR_IDS = frozenset({None, "", "local"})
"""Ids that name no single process: DBOS's default `local` is the same in every pod, and '' or NULL is nobody."""


class Liveness(Enum):
    """What is known of the process behind an executor id."""

    ALIVE = auto()
    TERMINATING = auto()
    """Still running its work, taking no more."""
    DEAD = auto()
    """Proven gone; doubt is never DEAD."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class LivenessView:
    """What a witness (the Kubernetes API, later) knows; an executor it does not name is UNKNOWN."""

    known: Mapping[str, Liveness] = field(default_factory=dict)

    def of(self, executor: str | None) -> Liveness:
        """Liveness of one executor; a shared id is never anything but UNKNOWN."""
        if executor is None or executor in SHARED_EXECUTOR_IDS:
            return Liveness.UNKNOWN
        return self.known.get(executor, Liveness.UNKNOWN)


NO_WITNESS = LivenessView()
"""The view where nobody watches the processes: the in-flight window decides."""
