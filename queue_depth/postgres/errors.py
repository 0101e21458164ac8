"""From asyncpg's errors to ours, once."""

import re
import socket
import ssl

import asyncpg

from queue_depth.core.errors import (
    AuthenticationFailedError,
    DatabaseUnreachableError,
    PermissionDeniedError,
    ReadError,
    ReadTimeoutError,
    SchemaUnreadableError,
)

_MOST = 300
"""Characters of a server's message that are worth showing."""

_NOISE = re.compile(r"\[Errno -?\d+\] ")


ANY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What asyncpg raises when a server or a network fails."""


def is_connection_lost(error: Exception) -> bool:
    """Whether the connection is gone, so that the same question on a new one may be answered."""
    return isinstance(
        error,
        asyncpg.PostgresConnectionError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.InterfaceError
        # What asyncpg says when the server goes away between two of its steps.
        | asyncpg.InternalClientError
        | ConnectionError,
    )


def is_schema_changed(error: Exception) -> bool:
    """Whether the tables are no longer what the statements were fitted to."""
    return isinstance(
        error,
        asyncpg.UndefinedColumnError
        | asyncpg.UndefinedTableError
        | asyncpg.InvalidSchemaNameError
        | asyncpg.InsufficientPrivilegeError
        | asyncpg.UndefinedObjectError,
    )


_TIMED_OUT = (
    "the database{at} did not answer in time ({said}): look at its load and locks, or raise "
    "QUEUE_DEPTH_STATEMENT_TIMEOUT_SECONDS"
)
_REFUSED = "the database{at} refused the login ({said}): check user and password"
_DENIED = "{said}: run the script that `queue-depth grants` prints"
_NO_TABLE = "{said}: is this a DBOS system database?"
_TLS_FAILED = "TLS with the database{at} failed ({said}): check sslmode and sslrootcert in the database URL"
_NO_FILE = (
    "cannot use the database{at}: {said}: look at the files that the database URL names, "
    "sslrootcert, sslcert, sslkey or the folder of a socket"
)
_UNUSABLE = "cannot use the database{at}: {said}"
_NOT_REACHED = (
    f"{_UNUSABLE}: check that it runs, the host and port of the database URL, and that no NetworkPolicy or firewall "
    "stands between"
)
_NO_HOST = (
    f"{_UNUSABLE}: check the host's name in the database URL, <service>.<namespace>.svc in Kubernetes, and that a "
    "NetworkPolicy allows DNS"
)
_NO_TLS = (
    f"{_UNUSABLE}: if the server has no TLS, enable it there (ssl = on), or do without by sslmode=prefer in the "
    "database URL"
)
_NO_DATABASE = f"{_UNUSABLE}: the database URL must end with the name of the DBOS system database"
_NO_SLOT = (
    f"{_UNUSABLE}: raise max_connections, or close connections or pools that nobody needs; the exporter needs one"
)
_BAD_PARAMETER = "the database{at} answered: {said}: take the parameter, or its value, out of the database URL"

_TRANSLATIONS: tuple[tuple[tuple[type[BaseException], ...], type[ReadError], str], ...] = (
    ((TimeoutError, asyncpg.QueryCanceledError), ReadTimeoutError, _TIMED_OUT),
    (
        (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError),
        AuthenticationFailedError,
        _REFUSED,
    ),
    ((asyncpg.InsufficientPrivilegeError,), PermissionDeniedError, _DENIED),
    (
        (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.InvalidSchemaNameError),
        SchemaUnreadableError,
        _NO_TABLE,
    ),
    ((FileNotFoundError, PermissionError), DatabaseUnreachableError, _NO_FILE),
    ((ssl.SSLError,), DatabaseUnreachableError, _TLS_FAILED),
    ((socket.gaierror,), DatabaseUnreachableError, _NO_HOST),
    ((asyncpg.InvalidCatalogNameError,), DatabaseUnreachableError, _NO_DATABASE),
    ((asyncpg.TooManyConnectionsError,), DatabaseUnreachableError, _NO_SLOT),
    (
        (asyncpg.UndefinedObjectError, asyncpg.CantChangeRuntimeParamError, asyncpg.InvalidParameterValueError),
        ReadError,
        _BAD_PARAMETER,
    ),
    (
        (
            asyncpg.PostgresConnectionError,
            asyncpg.CannotConnectNowError,
            asyncpg.AdminShutdownError,
            asyncpg.CrashShutdownError,
            asyncpg.TargetServerAttributeNotMatched,
        ),
        DatabaseUnreachableError,
        _UNUSABLE,
    ),
    ((asyncpg.PostgresError,), ReadError, "the database{at} answered: {said}"),
    # A connection that was there and broke, before the other kinds of ConnectionError.
    (
        (asyncpg.InterfaceError, asyncpg.InternalClientError, ConnectionResetError, BrokenPipeError),
        DatabaseUnreachableError,
        _UNUSABLE,
    ),
    ((ConnectionRefusedError,), DatabaseUnreachableError, _NOT_REACHED),
    # asyncpg's own, when TLS is asked for and not granted.
    ((ConnectionError,), DatabaseUnreachableError, _NO_TLS),
    ((OSError,), DatabaseUnreachableError, _NOT_REACHED),
)
"""The first row that fits wins."""


def translated(error: Exception, where: str) -> ReadError:
    """Our error for one of asyncpg's, with a text that says what happened, where, and how to mend it.

    Args:
        error: asyncpg's error, or ours already.
        where: The database's host and port, '' where unknown.
    """
    if isinstance(error, ReadError):
        return error
    at = f" at {where}" if where else ""
    for theirs, ours, text in _TRANSLATIONS:
        if isinstance(error, theirs):
            return ours(text.format(at=at, said=_text(error)))
    # The text of an unforeseen error may hold anything, a URL too.
    return ReadError(f"unexpected {type(error).__name__} while reading the database{at}")


def _text(error: Exception) -> str:
    text = _NOISE.sub("", " ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= _MOST else text[:_MOST] + "…"
