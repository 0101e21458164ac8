"""The composition root: builds the exporter from its settings and runs it."""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Generator

import uvicorn
import uvloop

from queue_depth import __version__
from queue_depth.core.limits import QueueOverride
from queue_depth.core.liveness import NO_WITNESS, LivenessView
from queue_depth.core.pool import Pool
from queue_depth.metrics.exposition import MetricsExposition
from queue_depth.poller import Poller
from queue_depth.postgres.check import Finding
from queue_depth.postgres.check import check as check_database
from queue_depth.postgres.connection import ConnectionSettings
from queue_depth.postgres.reader import PostgresTableReader
from queue_depth.settings.model import Listen, Settings
from queue_depth.store import SnapshotStore
from queue_depth.web.app import create_app
from queue_depth.web.auth import TokenFile
from queue_depth.web.protocol import BoundedProtocol

_log = logging.getLogger(__name__)

# KEDA keeps an idle connection for 90 s; whoever closes first loses a request now and then, so it must be KEDA.
_KEEP_ALIVE_SECONDS = 100

# KEDA opens a connection for each trigger. Above this, an answer is 503 and KEDA holds.
_MOST_CONNECTIONS = 10_000

_SHUTDOWN_SECONDS = 5


class CannotListenError(Exception):
    """The address is taken, not allowed or not this machine's."""


def serve(settings: Settings) -> bool:
    """Serve until SIGTERM or SIGINT; a second one does not wait for answers under way.

    Returns:
        Whether it ended because it was asked to. Why not is logged.
    """
    try:
        with listening(settings.listen) as listener:
            uvloop.run(_serve(settings, listener))
    except CannotListenError as error:
        _log.error("%s", error)
        return False
    except Exception:  # noqa: BLE001 - whatever ended it is told in one line of the log
        _log.critical("ended by a defect", exc_info=True)
        return False
    return True


def check(settings: Settings) -> list[Finding]:
    """Look at everything that `serve` needs of the database."""
    return asyncio.run(
        check_database(
            connection_settings(settings),
            schema=settings.dbos_schema,
            overrides=_overrides(settings),
            pools=_pools(settings),
            window_seconds=settings.in_flight_window_seconds,
        )
    )


def connection_settings(settings: Settings) -> ConnectionSettings:
    """How to reach the database."""
    return ConnectionSettings(
        url=settings.database_url.get_secret_value() if settings.database_url else None,
        url_file=settings.database_url_file,
        timeout_seconds=settings.statement_timeout_seconds,
    )


def listening(address: Listen) -> socket.socket:
    """A listening socket; an IPv6 one of every address takes IPv4 as well.

    Raises:
        CannotListenError: There is none to be had.
    """
    try:
        family, *_, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        both = family is socket.AF_INET6 and address.host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(where, family=family, dualstack_ipv6=both)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]  # Python adds the address
        raise CannotListenError(
            f"cannot listen on {address}: {why}; give another address with --listen or QUEUE_DEPTH_LISTEN"
        ) from error


async def _serve(settings: Settings, listener: socket.socket) -> None:
    reader = PostgresTableReader(
        connection_settings(settings),
        schema=settings.dbos_schema,
        overrides=_overrides(settings),
        window_seconds=settings.in_flight_window_seconds,
    )
    store = SnapshotStore(max_age_seconds=settings.max_age_seconds, monotonic=time.monotonic, wall=time.time)
    exposition = MetricsExposition(store, label_limit=settings.metrics_label_limit)
    poller = Poller(
        reader=reader,
        witness=_Nobody(),
        store=store,
        pools=_pools(settings),
        refresh_seconds=settings.refresh_seconds,
        observe_duration=exposition.observe_refresh,
    )
    app = create_app(
        store=store,
        exposition=exposition,
        tokens=TokenFile(settings.tokens_file) if settings.tokens_file else None,
        refresh_seconds=settings.refresh_seconds,
    )
    server = server_of(app)
    _log.info(
        "queue-depth %s listens on %s, %s",
        __version__,
        Listen(*listener.getsockname()[:2]),
        "with bearer tokens" if settings.tokens_file else "open to everyone who reaches it",
    )
    try:
        await until_stopped(server, listener, poller)
    finally:
        await reader.close()
    _log.info("stopped")


def server_of(app: Callable[..., Awaitable[None]]) -> "Server":
    """The HTTP server for an ASGI application, not yet listening."""
    return Server(
        uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )


async def until_stopped(server: "Server", listener: socket.socket, poller: Poller) -> None:
    """Serve and poll; end when the server is asked to, or with the poller's error."""
    polling = asyncio.create_task(poller.run(), name="poller")
    # A poller that dies would leave numbers to grow old in silence: the process ends with it.
    polling.add_done_callback(lambda _: server.stop())
    try:
        await server.serve(sockets=[listener])
    finally:
        polling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await polling


class Server(uvicorn.Server):
    """Uvicorn, ending quietly on a signal: uvicorn itself raises the signal again, which is no exit code 0."""

    def stop(self) -> None:
        """Stop accepting and finish what is under way; the second time, do not finish."""
        self.force_exit = self.should_exit
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop on SIGTERM and SIGINT."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def _overrides(settings: Settings) -> dict[str, QueueOverride]:
    return {name: queue.override() for name, queue in settings.queues.items()}


def _pools(settings: Settings) -> dict[str, Pool]:
    return {name: pool.pool(name) for name, pool in settings.pools.items()}


class _Nobody:
    """The witness where nobody watches the processes."""

    def view(self) -> LivenessView:
        """Nothing is known."""
        return NO_WITNESS
