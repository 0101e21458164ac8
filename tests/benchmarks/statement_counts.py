"""What PostgreSQL itself counted of the statements it was sent."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg


@dataclass(frozen=True, slots=True)
class Sample:
    """Counts since the reset.

    Attributes:
        statements: All statements, BEGIN, SET and COMMIT included.
        begun: Transactions begun; the exporter has one for each refresh.
        ended: Transactions committed.
        buffers: Pages of 8 kB that were touched.
    """

    statements: int
    begun: int
    ended: int
    buffers: int

    @property
    def is_between_refreshes(self) -> bool:
        """Whether no refresh was under way, so that whole refreshes were counted."""
        return self.begun == self.ended > 0


class StatementCounts:
    """Reads pg_stat_statements for one database and one role.

    Args:
        dsn: The database, as a superuser.
        role: The role whose statements count.
    """

    def __init__(self, dsn: str, role: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._role = role

    def reset(self) -> None:
        """Forget what has been counted; whoever has the role must be idle."""
        self._connection.execute("SELECT pg_stat_statements_reset()")

    def sample(self) -> Sample:
        """What has been counted since the reset."""
        row = self._connection.execute(
            """
            SELECT
                coalesce(sum(calls), 0)::bigint,
                coalesce(sum(calls) FILTER (WHERE query LIKE 'BEGIN%%'), 0)::bigint,
                coalesce(sum(calls) FILTER (WHERE query = 'COMMIT'), 0)::bigint,
                coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
            FROM pg_stat_statements
            WHERE
                dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND userid = (SELECT oid FROM pg_roles WHERE rolname = %s)
            """,
            (self._role,),
        ).fetchone()
        assert row is not None
        return Sample(*row)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
