"""The composition of the demo: starts its parts in order, turns the loop, and removes everything."""

import logging
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from dbos import DBOSClient, run_dbos_database_migrations
from rich.console import Console
from sqlalchemy.exc import OperationalError

from queue_depth.demo.application import APPLICATION, register_queues
from queue_depth.demo.autoscaler import Autoscaler
from queue_depth.demo.database import EmbeddedDatabase
from queue_depth.demo.exporter import Exporter
from queue_depth.demo.fleet import Fleet
from queue_depth.demo.load import Load
from queue_depth.demo.process import DemoError
from queue_depth.demo.view import Frame, View, view_on

_TICK_SECONDS = 0.5
_STARTING_SECONDS = 60
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _StoppedError(Exception):
    """The user, or whoever started the demo, wants it to end."""


class _Clock:
    """Pauses that a signal ends.

    The handler only notes the signal: an exception out of it could come between the start of a process and the
    note that it was started, and leave the process behind.
    """

    def __init__(self) -> None:
        self._stopped = False

    def stop(self, *_: int | FrameType | None) -> None:
        """Ask the demo to end: a signal handler. More signals change nothing while it cleans up."""
        self._stopped = True

    def pause(self, seconds: float = 0.05) -> None:
        """Wait.

        Raises:
            _StoppedError: The demo shall end.
        """
        until = time.monotonic() + seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
        if self._stopped:
            raise _StoppedError


def run(*, seconds: float | None, port: int) -> None:
    """Run the demo until Ctrl-C, SIGTERM, SIGHUP, or the end of its time. Nothing stays behind.

    Args:
        seconds: How long to show numbers; None: until a signal.
        port: Loopback port of the exporter; 0: a free one.

    Raises:
        DemoError: A part did not start, or ended; the text carries the end of its log.
    """
    clock = _Clock()
    with ExitStack() as parts, suppress(_StoppedError):
        parts.enter_context(_signals_stop(clock))
        folder = parts.enter_context(_temporary_folder())
        view = parts.enter_context(view_on(Console()))
        _show(view, clock, folder, seconds, port)


def _show(view: View, clock: _Clock, folder: Path, seconds: float | None, port: int) -> None:
    with ExitStack() as parts:
        parts.enter_context(_log_to(folder / "client.log"))
        view.say("starting PostgreSQL …")
        (folder / "postgres").mkdir(mode=0o700)
        starting = _deadline(clock)
        database = parts.enter_context(EmbeddedDatabase(folder / "postgres", folder / "postgres.log", starting))
        view.say("making DBOS's tables and registering the queues …")
        clock.pause(0)
        run_dbos_database_migrations(system_database_url=database.url)
        client = DBOSClient(
            system_database_url=database.url, application_name=APPLICATION, retry_connection_errors=False
        )
        parts.callback(client.destroy)
        register_queues(client)
        view.say("starting queue-depth serve …")
        clock.pause(0)
        exporter = parts.enter_context(Exporter(database.url, port, folder / "exporter.log", starting))
        view.say(f"queue-depth serve answers on {exporter.url}")
        fleet = parts.enter_context(Fleet(database.url, folder))
        load, autoscaler = Load(client), Autoscaler()
        began = time.monotonic()
        while seconds is None or time.monotonic() - began < seconds:
            now = time.monotonic() - began
            database.check()
            try:
                load.enqueue_due(now)
                fleet.observe(_running(client))
            except OperationalError as error:
                raise database.failure("PostgreSQL does not answer") from error
            if (pool := exporter.pool()) is not None:
                # As with KEDA: no number, no change.
                fleet.scale(autoscaler.replicas(now, pool))
                view.show(Frame(now, pool, exporter.queues(), fleet.workers, exporter.url))
            clock.pause(_TICK_SECONDS)


def _running(client: DBOSClient) -> Counter[str]:
    """Running workflows by executor, from DBOS itself: which worker is idle is not among the exporter's numbers."""
    pending = client.list_workflows(status="PENDING", load_input=False, load_output=False)
    return Counter(workflow.executor_id for workflow in pending if workflow.executor_id is not None)


def _deadline(clock: _Clock) -> Callable[[], None]:
    began = time.monotonic()

    def pause() -> None:
        if time.monotonic() - began > _STARTING_SECONDS:
            raise DemoError(f"not ready after {_STARTING_SECONDS} s; is the machine very busy?")
        clock.pause()

    return pause


@contextmanager
def _signals_stop(clock: _Clock) -> Generator[None]:
    before = {number: signal.signal(number, clock.stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _log_to(path: Path) -> Generator[None]:
    """Keep what the DBOS client says out of the picture."""
    handler = logging.FileHandler(path)
    logger = logging.getLogger("dbos")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


@contextmanager
def _temporary_folder() -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="queue-depth-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
