"""The SQL statements, loaded from `sql/*.sql` and fitted to the schema that is there.

Braces in a file name what may be missing from an older DBOS schema; nothing else is ever put into a statement.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from queue_depth.postgres.schema import READABLE, Schema


def _sql(name: str) -> str:
    return files("queue_depth.postgres").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8").rstrip()


_load = cache(_sql)


def quoted(identifier: str) -> str:
    """A quoted SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A quoted SQL string."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f" E'{escaped}'" if "\\" in text else f"'{escaped}'"


COLUMNS = _load("columns")
INDEXES = _load("indexes")
LAG = _load("lag")
ROLE = _load("role")


def begin(*, statement_timeout_seconds: float) -> str:
    """Open the transaction of one refresh."""
    return _load("begin").format(statement_timeout_ms=max(1, round(statement_timeout_seconds * 1000)))


def grants(*, schema: str, role: str) -> str:
    """The script that lets a role read what the exporter needs, and no more."""
    columns = ", ".join(literal(f"{table}.{column}") for table, names in READABLE.items() for column in names)
    return _load("grants").format(schema=literal(schema), role=literal(role), columns=f"ARRAY[{columns}]")


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of a refresh, for one schema.

    Attributes:
        catalog: Clock, shape, queues, versions; one row.
        workflows: Every unfinished workflow, grouped.
        starts: Recent starts of queues with a rate limit.
        partitions: Partitions of partitioned queues; None where the schema has no partition keys.
    """

    catalog: str
    workflows: str
    starts: str
    partitions: str | None


def statements(schema: Schema) -> Statements:
    """Fit the statements to what a schema has."""

    def column(table: str, name: str, kind: str) -> str:
        return name if schema.has(table, name) else f"NULL::{kind}"

    queue_columns = {
        "application_name": "text",
        "partition_concurrency": "int",
        "partition_worker_concurrency": "int",
        "partition_rate_limit_max": "int",
        "partition_rate_limit_period_sec": "float8",
    }
    name = quoted(schema.name)
    workflow_columns = {
        "schema": name,
        "application_name": column("workflow_status", "application_name", "text"),
        "queue_partition_key": column("workflow_status", "queue_partition_key", "text"),
        "delay_until_epoch_ms": column("workflow_status", "delay_until_epoch_ms", "bigint"),
        "counts_as_start": schema.counts_as_start,
        "searched_queue": schema.searched_queue,
    }
    has_delayed = schema.has("workflow_status", "delay_until_epoch_ms")

    def delayed(part: str) -> str:
        return _load(part).format(**workflow_columns) if has_delayed else ""

    return Statements(
        catalog=_load("catalog").format(
            queues=_load("queues").format(
                schema=name,
                **{column_name: column("queues", column_name, kind) for column_name, kind in queue_columns.items()},
            )
            if schema.has_table("queues")
            else "NULL::json",
            latest_versions=_load("latest_versions").format(
                schema=name, application_name=column("application_versions", "application_name", "text")
            )
            if schema.has_table("application_versions")
            else "NULL::json",
        ),
        workflows=_load("workflows").format(delayed=delayed("delayed"), **workflow_columns),
        starts=_load("starts").format(**workflow_columns),
        partitions=_load("partitions").format(delayed=delayed("partitions_delayed"), **workflow_columns)
        if schema.has("workflow_status", "queue_partition_key")
        else None,
    )
