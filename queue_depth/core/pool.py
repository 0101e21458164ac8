"""A pool: the pods of one Deployment, said as the work they take."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from queue_depth.core.liveness import SHARED_EXECUTOR_IDS


@dataclass(frozen=True, slots=True)
class Pool:
    """Which rows the pods of one Deployment can take.

    Attributes:
        name: The pool's name; the queue's where a queue is asked for by its name alone.
        queues: The queues its pods serve; None: every queue of the application, as DBOS does by default.
        application: The application's name; None: any.
        version: The one application version its pods run; None: whatever runs, and the latest.
        executors: Patterns of its executor ids (`*`, `?`, `[…]`), so that work of other pods of the application,
            such as an API's, does not hold up this pool; empty: any executor.
        hpa_tolerance: Difference that the pool's HPA ignores (Kubernetes: 0.1), where it cannot be told to ignore
            none; 0 where it can.
        by_queue: The pool is one queue asked for by its name: its answer counts that queue's rows only.
    """

    name: str
    queues: frozenset[str] | None = None
    application: str | None = None
    version: str | None = None
    executors: tuple[str, ...] = ()
    hpa_tolerance: float = 0.0
    by_queue: bool = False

    def has_executor(self, executor: str | None) -> bool:
        """Whether the executor may be one of this pool's pods. Behind a shared id may be any pod."""
        return (
            not self.executors
            or executor is None
            or executor in SHARED_EXECUTOR_IDS
            or any(fnmatchcase(executor, pattern) for pattern in self.executors)
        )


def queue_pool(queue: str) -> Pool:
    """The pool that a queue asked for by its name alone is."""
    return Pool(name=queue, queues=frozenset({queue}), by_queue=True)
