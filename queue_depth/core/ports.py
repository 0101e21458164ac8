"""What the core asks of the world."""

from typing import Protocol

from queue_depth.core.liveness import LivenessView
from queue_depth.core.table import TableRead


class TableReader(Protocol):
    """Reads DBOS's tables once, consistently."""

    async def read(self) -> TableRead:
        """Read.

        Raises:
            ReadError: The numbers cannot be known; nothing else is raised.
        """
        ...


class LivenessWitness(Protocol):
    """Knows which executors live. The Kubernetes API will be one."""

    def view(self) -> LivenessView:
        """What is known now; executors it does not name are UNKNOWN. Never blocks."""
        ...
