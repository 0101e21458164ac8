"""Which waiting rows some pod would take, and why nobody takes the others."""

from dataclasses import dataclass
from enum import StrEnum

from queue_depth.core.versions import Versions, same_application


class Stranding(StrEnum):
    """Why a waiting row is taken by nobody. The values are labels of a metric."""

    UNREGISTERED_QUEUE = "unregistered_queue"
    """No process polls the queue: it has no row in `queues`, and none of its work runs."""
    OTHER_APPLICATION = "other_application"
    """The row, or its queue, belongs to an application that these processes are not of."""
    VERSION = "version"
    """Its version is not the latest, and no executor of that version holds running work."""
    NO_PARTITION_KEY = "no_partition_key"
    """The queue is partitioned and the row has no key: DBOS never visits it."""


@dataclass(frozen=True, slots=True)
class Takers:
    """The processes that might take a queue's rows, as one pool sees them.

    Attributes:
        polled: Whether any process polls the queue.
        owner: The application that owns the queue: no other's processes poll it; None: any.
        application: The application of those processes; None: any.
        pinned: The one version that the pool's pods run; None: whatever runs, and the latest.
        versions: What the read says of versions.
    """

    polled: bool
    owner: str | None
    application: str | None
    pinned: str | None
    versions: Versions

    def why_stranded(self, application: str | None, version: str | None) -> Stranding | None:
        """Why a row of this application and version is taken by nobody; None when some pod takes it."""
        if not self.polled:
            return Stranding.UNREGISTERED_QUEUE
        if not (same_application(application, self.application) and same_application(self.owner, self.application)):
            return Stranding.OTHER_APPLICATION
        if not self._takes(application, version):
            return Stranding.VERSION
        return None

    def concerns(self, application: str | None, version: str | None) -> bool:
        """Whether the row is this pool's business: with a pinned version, other versions' rows are not."""
        return self.pinned is None or self._takes(application, version)

    def _takes(self, application: str | None, version: str | None) -> bool:
        return self.versions.takes(application or self.application, version, self.pinned)
