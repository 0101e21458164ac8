"""What `queue-depth check` says of a database: connection, role, schema, indexes, queues."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import asyncpg

from queue_depth.core.advice import advice
from queue_depth.core.errors import ReadError
from queue_depth.core.limits import QueueOverride
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.postgres import errors
from queue_depth.postgres import statements as sql
from queue_depth.postgres.connection import ConnectionSettings, connect
from queue_depth.postgres.reader import PostgresTableReader, look


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        level: `error`: no numbers can be served; `warning`: some are less exact, or something is unwise.
        subject: What was looked at.
        text: What was found and, where something is wrong, how to mend it.
    """

    level: Literal["ok", "warning", "error"]
    subject: Literal["connection", "role", "schema", "indexes", "queues"]
    text: str


async def check(
    settings: ConnectionSettings,
    *,
    schema: str,
    overrides: Mapping[str, QueueOverride],
    pools: Mapping[str, Pool],
    window_seconds: float,
) -> list[Finding]:
    """Look at everything that a refresh needs, do one refresh, and look at what it says of queues and pools.

    Stops at the first error; what comes after it could not be looked at.
    """
    findings: list[Finding] = []
    subject: Literal["connection", "schema", "queues"] = "connection"
    try:
        connection = await connect(settings)
        try:
            await connection.execute(sql.begin(statement_timeout_seconds=settings.timeout_seconds))
            findings += [await _server(connection), *await _role(connection, schema)]
            subject = "schema"
            findings += await _schema(connection, schema)
        finally:
            connection.terminate()
        subject = "queues"
        reader = PostgresTableReader(settings, schema=schema, overrides=overrides, window_seconds=window_seconds)
        try:
            findings += _queues(Snapshot(await reader.read(), pools))
        finally:
            await reader.close()
    except (*errors.ANY, ReadError) as error:
        findings.append(Finding("error", subject, str(errors.translated(error, settings.where()))))
    return findings


async def _server(connection: asyncpg.Connection) -> Finding:
    version = connection.get_server_version()
    standby = await connection.fetchval("SELECT pg_is_in_recovery()")
    oldest, newest = 13, 18
    text = f"PostgreSQL {version.major}.{version.minor}, {'standby: its lag counts as age' if standby else 'primary'}"
    if oldest <= version.major <= newest:
        return Finding("ok", "connection", text)
    return Finding("warning", "connection", f"{text}; tested with {oldest} to {newest} only")


async def _role(connection: asyncpg.Connection, schema: str) -> list[Finding]:
    (row,) = await connection.fetch(sql.ROLE, schema)
    excess = [word for word in ("superuser", "may_write", "may_read_inputs") if row[word]]
    if not excess:
        return [Finding("ok", "role", f'"{row["name"]}" has no rights in excess')]
    rights = {
        "superuser": "is a superuser",
        "may_write": "may change workflows",
        "may_read_inputs": "may read the inputs of workflows",
    }
    return [
        Finding(
            "warning",
            "role",
            f'"{row["name"]}" {" and ".join(rights[word] for word in excess)}, which is never needed: '
            "make a role of its own with the script that `queue-depth grants` prints",
        )
    ]


async def _schema(connection: asyncpg.Connection, name: str) -> list[Finding]:
    schema = await look(connection, name)
    indexed = not any("index" in note.missing for note in schema.notes)
    return [
        Finding("ok", "schema", f'"{name}" can be read'),
        *(Finding("warning", "indexes" if "index" in n.missing else "schema", str(n)) for n in schema.notes),
        *([Finding("ok", "indexes", "unfinished workflows are found by index")] if indexed else []),
    ]


def _queues(snapshot: Snapshot) -> list[Finding]:
    return [
        Finding("ok", "queues", f"{len(snapshot.queues)} known"),
        *(Finding("warning", "queues", f"{piece.topic}: {piece.text}") for piece in advice(snapshot)),
    ]
