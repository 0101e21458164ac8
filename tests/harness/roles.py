"""The least-privileged role that the documentation tells operators to make, by the project's own script."""

from __future__ import annotations

from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from queue_depth.postgres.statements import grants

READER = "queue_depth_reader"


def reader_of(dsn: str, *, role: str = READER, password: str | None = None, schema: str = "dbos") -> str:
    """Create the read-only role if need be, grant it what the script grants, and return its URI.

    Args:
        dsn: The database, as its owner.
        role: Name of the role; roles belong to the whole server.
        password: Its password, where pg_hba asks for one.
        schema: Schema of DBOS' tables.
    """
    create_role(dsn, role, password)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(grants(schema=schema, role=role).encode())
    return as_user(dsn, role, password)


def create_role(dsn: str, role: str, password: str | None = None) -> None:
    """Create a role that may log in and nothing else, or give an existing one that password."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        exists = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None
        connection.execute(
            sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                sql.SQL("ALTER" if exists else "CREATE"), sql.Identifier(role), sql.Literal(password)
            )
        )


def as_user(dsn: str, user: str, password: str | None = None) -> str:
    """Return the URI with another user (and password) in it."""
    parts = urlsplit(dsn)
    where = parts.netloc.rpartition("@")[2]
    who = quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
    return urlunsplit(parts._replace(netloc=f"{who}@{where}"))
