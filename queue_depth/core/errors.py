"""What can keep the exporter from knowing: each reason has a fixed label for metrics and answers."""

from typing import ClassVar


class ReadError(Exception):
    """A refresh failed. Its text says what happened, where, and how to mend it, and holds no secret.

    Attributes:
        reason: A label from a fixed set, for `queue_depth_refreshes_total{outcome}` and problem answers.
    """

    reason: ClassVar[str] = "database_error"


class DatabaseUnreachableError(ReadError):
    """No connection: refused, unknown host, no route, shutting down, TLS failed, too many connections."""

    reason = "database_unreachable"


class AuthenticationFailedError(ReadError):
    """The database refused the user, the password or the certificate."""

    reason = "authentication_failed"


class PermissionDeniedError(ReadError):
    """The role may not read a table or column that the numbers need."""

    reason = "permission_denied"


class ReadTimeoutError(ReadError):
    """The database did not answer within the statement timeout."""

    reason = "timeout"


class SchemaUnreadableError(ReadError):
    """A table or column that the numbers need does not exist."""

    reason = "schema_unreadable"


REASONS: tuple[str, ...] = (
    "database_unreachable",
    "authentication_failed",
    "permission_denied",
    "timeout",
    "schema_unreadable",
    "database_error",
)
"""Every reason that a refresh can fail for."""
