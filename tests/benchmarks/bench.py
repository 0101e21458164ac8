"""What every benchmark stands on: one server, one table, one measure of effort."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.workload import Table
from harness.schemas import DatabaseFactory

if TYPE_CHECKING:
    from harness.postgres import PostgresServer

SERVER_SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "max_connections": "100",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_utility": "on",
}
"""Durability is off (the harness' default), as nothing here measures writes; the planner is left as it comes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much work a run is.

    Attributes:
        finished: Finished workflows; the comparison of growth has a tenth of it.
        in_flight: Unfinished workflows, one measurement for each.
        pairs: How often the two sides of a comparison take turns.
        sdk_pairs: The same, where one side takes seconds.
        load_rounds: How often the HTTP servers take turns.
        load_seconds: How long each is loaded in a turn.
        scaled_objects: The larger number of ScaledObjects.
        refreshes_watched: Refreshes whose statements are counted.
        refreshes_of_an_hour: Refreshes whose memory is watched; an hour has 720.
    """

    finished: int = 1_000_000
    in_flight: tuple[int, ...] = (10_000, 100_000)
    pairs: int = 120
    sdk_pairs: int = 5
    load_rounds: int = 5
    load_seconds: int = 4
    scaled_objects: int = 200
    refreshes_watched: int = 20
    refreshes_of_an_hour: int = 720


FULL = Scale()
SMALL = Scale(
    finished=2_000,
    in_flight=(500,),
    pairs=3,
    sdk_pairs=1,
    load_rounds=1,
    load_seconds=1,
    scaled_objects=20,
    refreshes_watched=2,
    refreshes_of_an_hour=12,
)
"""Enough to see that everything runs; the numbers mean nothing."""


@dataclass(slots=True)
class Bench:
    """A running server and its tables.

    Attributes:
        scale: How much work a run is.
        server: PostgreSQL, with `SERVER_SETTINGS`.
    """

    scale: Scale
    server: PostgresServer
    _databases: DatabaseFactory = field(init=False)
    _tables: dict[int, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._databases = DatabaseFactory(self.server)

    def table(self, finished: int) -> Table:
        """A table with so many finished workflows, made on first use."""
        if finished not in self._tables:
            table = self._tables[finished] = Table(self._databases.make())
            table.add_finished(finished)
        return self._tables[finished]

    def empty_table(self) -> Table:
        """A new table without rows."""
        return Table(self._databases.make())


def server_core() -> int:
    """The core for HTTP servers under load."""
    return max(os.sched_getaffinity(0))


def load_core() -> int:
    """The core for what loads them; another one, if the machine has two."""
    return min(os.sched_getaffinity(0))
