"""Where the database is, and connections to it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from queue_depth.core.errors import DatabaseUnreachableError
from queue_depth.postgres import errors

_CLIENT_ONLY = frozenset(
    {
        "application_name",
        "channel_binding",
        "client_encoding",
        "connect_timeout",
        "fallback_application_name",
        "gssdelegation",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "prepare_threshold",
        "sslcertmode",
        "sslcompression",
        "sslsni",
        "tcp_user_timeout",
    }
)
"""Parameters that a DBOS URL may carry for libpq; asyncpg would send them to the server, which refuses them."""


_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
"""A host, or an IPv6 address in brackets, and perhaps a port."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach the database.

    Attributes:
        url: A PostgreSQL URL; None: the file, or libpq's variables (`PGHOST`, …).
        url_file: A file that holds the URL, read anew for each connection, so that a rotated password is taken.
        timeout_seconds: For connecting, and for each statement.
    """

    url: str | None = None
    url_file: Path | None = None
    timeout_seconds: float = 5.0

    def __repr__(self) -> str:
        """Without the URL, which holds the password."""
        return f"ConnectionSettings(url_file={self.url_file!r}, timeout_seconds={self.timeout_seconds!r})"

    def dsn(self) -> str | None:
        """The URL as asyncpg reads it; None: libpq's variables.

        Raises:
            DatabaseUnreachableError: The file cannot be read, or does not hold a PostgreSQL URL.
        """
        url, origin = self.url, "the database URL"
        if self.url_file is not None:
            origin = f"the file {self.url_file}"
            try:
                url = self.url_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise DatabaseUnreachableError(f"cannot read the database URL from {origin}: {_kind(error)}") from error
        if url is None:
            return None
        return _for_asyncpg(url, origin)

    def where(self) -> str:
        """Host and port, for messages; '' where they cannot be told."""
        try:
            dsn = self.dsn()
        except DatabaseUnreachableError:
            return ""
        if dsn is None:
            return os.environ.get("PGHOST", "localhost")
        parts = urlsplit(dsn)
        return parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")


def _kind(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _for_asyncpg(url: str, origin: str) -> str:
    """Accept what DBOS accepts: SQLAlchemy's scheme with a driver, and libpq's client parameters."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.partition("+")[0]
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
        query = [(name, value) for name, value in pairs if name not in _CLIENT_ONLY]
        hosts = parts.netloc.rpartition("@")[2].split(",")
        # An unescaped / or ? or # in the password ends the host part early: the @ lands behind it, and what is
        # left looks like a host and a port, which messages show.
        understood = (
            scheme in {"postgresql", "postgres"}
            and all(_HOST.fullmatch(host) for host in hosts)
            and "@" not in parts.path + parts.query + parts.fragment
        )
    except ValueError:
        understood = False
    if not understood:
        # The text is left out on purpose: it may hold the password.
        raise DatabaseUnreachableError(
            f"{origin} is not a PostgreSQL URL: expected postgresql://user:password@host:5432/database "
            "(in the password, write %40 for @, %2F for /, %23 for #, %3F for ?)"
        )
    return urlunsplit((scheme, parts.netloc, parts.path, urlencode(query), ""))


async def connect(settings: ConnectionSettings) -> asyncpg.Connection:
    """Open a connection that sets nothing outside of transactions and prepares nothing on the server by name.

    Both are what a transaction-pooling PgBouncer asks for. Every statement is planned with its own values, so a
    generic plan never turns an index scan into a scan of the finished workflows.

    Raises:
        ReadError: No connection.
    """
    try:
        return await asyncpg.connect(
            settings.dsn(),
            timeout=settings.timeout_seconds,
            statement_cache_size=0,
            server_settings={"application_name": "queue-depth"},
        )
    except (*errors.ANY, ValueError) as error:
        raise errors.translated(error, settings.where()) from error
