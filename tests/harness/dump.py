"""Databases as SQL text: what `pg_dump` says, without what only psql or one PostgreSQL version understands."""

from __future__ import annotations

import re

import psycopg
from psycopg import sql

from harness.postgres_binaries import client_programs
from harness.program import run

# Settings, of which older servers do not know all; psql's own commands; comments.
OF_THE_SESSION = re.compile(
    r"SET (\w+_timeout|client_\w+|standard_conforming_strings|check_function_bodies|xmloption|row_security"
    r"|default_tablespace|default_table_access_method) = |SELECT pg_catalog\.set_config\(|\\|--"
)


def dumped(dsn: str) -> str:
    """Return the SQL that makes this database's schemas and rows again, in an empty one."""
    text = run(
        [
            client_programs() / "pg_dump",
            "--inserts",
            "--no-owner",
            "--no-privileges",
            "--no-comments",
            f"--dbname={dsn}",
        ]
    )
    lines = [
        line for line in text.splitlines() if not line.startswith(("SET ", "SELECT pg_catalog.set_config", "\\", "--"))
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def load(text: str, dsn: str) -> None:
    """Run a dump in an empty database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def columns(dsn: str, table: str, schema: str = "dbos") -> frozenset[str]:
    """Return the names of a table's columns; empty if there is no such table."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
            (schema, table),
        )
        return frozenset(name for (name,) in found)


def remove_rows(dsn: str, schema: str = "dbos") -> None:
    """Take away what launching left, such as the launcher's version; the migrations' numbers stay."""
    with psycopg.connect(dsn) as connection:
        for table in ("workflow_status", "queues", "application_versions"):
            if columns(dsn, table, schema):
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, table)))
