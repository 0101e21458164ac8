"""One refresh, again and again."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from queue_depth.core.errors import ReadError
from queue_depth.core.pool import Pool
from queue_depth.core.ports import LivenessWitness, TableReader
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import SchemaNote
from queue_depth.store import SnapshotStore

_log = logging.getLogger(__name__)


class Poller:
    """Reads, stores, observes.

    Args:
        reader: Reads the tables.
        witness: Knows which executors live.
        store: Gets every result.
        pools: The configured pools, by name.
        refresh_seconds: From the beginning of one refresh to the beginning of the next.
        observe_duration: Told how long each successful refresh took, in seconds.
    """

    def __init__(
        self,
        *,
        reader: TableReader,
        witness: LivenessWitness,
        store: SnapshotStore,
        pools: Mapping[str, Pool],
        refresh_seconds: float,
        observe_duration: Callable[[float], None],
    ) -> None:
        self._reader = reader
        self._witness = witness
        self._store = store
        self._pools = pools
        self._refresh_seconds = refresh_seconds
        self._observe_duration = observe_duration
        self._said: str | None = None
        self._notes: tuple[SchemaNote, ...] | None = None

    async def run(self) -> None:
        """Refresh for ever, at once and then every `refresh_seconds`, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self.refresh()
            await asyncio.sleep(max(0.0, began + self._refresh_seconds - loop.time()))

    async def refresh(self) -> None:
        """Refresh once. A failure is stored, and logged when the state changes, not each time."""
        self._store.attempt_started()
        began = time.perf_counter()
        try:
            read = await self._reader.read()
        except ReadError as error:
            self._store.failed(error)
            self._say(error.reason, logging.ERROR, "cannot read the workflow table: %s", error)
            return
        # In a thread: with very many queues the answers of the last snapshot must not wait for this one.
        snapshot = await asyncio.to_thread(Snapshot, read, self._pools, self._witness.view())
        self._store.published(snapshot)
        self._observe_duration(time.perf_counter() - began)
        self._say("success", logging.INFO, "reading the workflow table: %d queues known", len(snapshot.queues))
        self._say_notes(read.notes)

    def _say_notes(self, notes: tuple[SchemaNote, ...]) -> None:
        """At the start and after an upgrade: what the schema lacks."""
        if notes != self._notes:
            self._notes = notes
            for note in notes:
                _log.warning("this DBOS schema has %s", note)
            if not notes:
                _log.info("this DBOS schema has all that the numbers need")

    def _say(self, state: str, level: int, message: str, *args: object) -> None:
        if state != self._said:
            self._said = state
            _log.log(level, message, *args, extra={"state": state})
