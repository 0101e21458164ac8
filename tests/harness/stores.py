"""Stores with a clock that the test turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queue_depth.core.snapshot import Snapshot
from queue_depth.store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queue_depth.core.pool import Pool
    from queue_depth.core.table import TableRead

WALL = 1_800_000_000.0
"""What the wall clock shows while the monotonic clock shows 0."""


@dataclass(slots=True)
class Clock:
    """A monotonic clock that stands still until it is turned."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def empty_store(clock: Clock | None = None, *, max_age_seconds: float = 30.0) -> SnapshotStore:
    """Return a store that nothing was published to; without a clock, time stands still."""
    turned = clock or Clock()
    return SnapshotStore(max_age_seconds=max_age_seconds, monotonic=turned, wall=lambda: WALL + turned.now)


def publish(store: SnapshotStore, read: TableRead, pools: Mapping[str, Pool] | None = None) -> None:
    """Refresh the store with this read, as the poller would."""
    store.attempt_started()
    store.published(Snapshot(read, pools))


def store_of(read: TableRead, pools: Mapping[str, Pool] | None = None, clock: Clock | None = None) -> SnapshotStore:
    """Return a store with one fresh snapshot."""
    store = empty_store(clock)
    publish(store, read, pools)
    return store
