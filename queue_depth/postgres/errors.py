"""From asyncpg's errors to ours, once."""

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


def is_connection_lost(error: Exception) -> bool:
    """Whether the connection is gone, so that the same question on a new one may be answered."""
    return isinstance(
        error,
        asyncpg.PostgresConnectionError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.InterfaceError
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
    (
        (
            asyncpg.PostgresConnectionError,
            asyncpg.CannotConnectNowError,
            asyncpg.TooManyConnectionsError,
            asyncpg.AdminShutdownError,
            asyncpg.CrashShutdownError,
            asyncpg.InvalidCatalogNameError,
            asyncpg.TargetServerAttributeNotMatched,
        ),
        DatabaseUnreachableError,
        _UNUSABLE,
    ),
    ((asyncpg.PostgresError,), ReadError, "the database{at} answered: {said}"),
    ((asyncpg.InterfaceError, OSError), DatabaseUnreachableError, _UNUSABLE),
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
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _MOST else text[:_MOST] + "…"
