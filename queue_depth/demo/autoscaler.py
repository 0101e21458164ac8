"""A miniature of what KEDA and the HPA do with the exporter's numbers."""

from collections import deque

from queue_depth.demo.exporter import Depth

MOST_REPLICAS = 4
_SCALE_IN_SECONDS = 4.0


class Autoscaler:
    """Decides how many workers there should be.

    Two triggers, `wanted_replicas` and `floor_replicas`, of which the HPA takes the larger one. Up at once; down
    only to the highest recommendation of the last seconds, which is the HPA's scale-down stabilization.
    """

    def __init__(self) -> None:
        self._recommendations: deque[tuple[float, int]] = deque()

    def replicas(self, now: float, depth: Depth) -> int:
        """The number of workers to have at this time (seconds)."""
        recommended = min(MOST_REPLICAS, max(depth.wanted_replicas, depth.floor_replicas))
        self._recommendations.append((now, recommended))
        while self._recommendations[0][0] < now - _SCALE_IN_SECONDS:
            self._recommendations.popleft()
        return max(replicas for _, replicas in self._recommendations)
