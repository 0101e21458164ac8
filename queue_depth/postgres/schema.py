"""What a DBOS schema has, lacks, and means for the numbers: columns and indexes are looked at, never versions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queue_depth.core.errors import PermissionDeniedError, SchemaUnreadableError
from queue_depth.core.table import SchemaNote

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "workflow_status": (
        "status",
        "queue_name",
        "executor_id",
        "application_version",
        "updated_at",
        "started_at_epoch_ms",
    ),
}
"""Without these there are no numbers: DBOS Python 1.3, TypeScript 2.10 and everything since has them."""

_QUEUES = (
    "name",
    "concurrency",
    "worker_concurrency",
    "rate_limit_max",
    "rate_limit_period_sec",
    "partition_queue",
)
_PARTITION_LIMITS = (
    "partition_concurrency",
    "partition_worker_concurrency",
    "partition_rate_limit_max",
    "partition_rate_limit_period_sec",
)
_VERSIONS = ("version_name", "version_timestamp")

READABLE: Mapping[str, tuple[str, ...]] = {
    "workflow_status": (
        *_NEEDED["workflow_status"],
        "application_name",
        "queue_partition_key",
        "delay_until_epoch_ms",
        "rate_limited",
    ),
    "queues": (*_QUEUES, "application_name", *_PARTITION_LIMITS),
    "application_versions": (*_VERSIONS, "application_name"),
}
"""Every column that is ever read, by table."""

TABLES = (*READABLE, "workflow_input")
"""Tables to look at. `workflow_input` is never read: its presence tells that queues in code are gone."""


@dataclass(frozen=True, slots=True)
class Index:
    """A valid index of `workflow_status`: key columns in order, and the predicate of a partial one ('' if none)."""

    name: str
    key_columns: tuple[str, ...]
    predicate: str


@dataclass(frozen=True, slots=True)
class Schema:
    """A DBOS schema that can be read.

    Attributes:
        name: The schema's name.
        readable: Readable columns by table; a table is missing here when any column that it must have is.
        counts_as_start: The condition by which DBOS counts a start against a rate limit, in this schema.
        searched_queue: How statements name `queue_name` to search by it.
        unregistered_may_run: See `TableRead.unregistered_may_run`.
        notes: What is missing, and which number is less exact for it.
    """

    name: str
    readable: Mapping[str, frozenset[str]]
    counts_as_start: str
    searched_queue: str
    unregistered_may_run: bool
    notes: tuple[SchemaNote, ...]

    def has_table(self, table: str) -> bool:
        """Whether the table is there and readable."""
        return table in self.readable

    def has(self, table: str, column: str) -> bool:
        """Whether the column is there and readable."""
        return column in self.readable.get(table, ())

    @property
    def partition_columns(self) -> bool:
        """Whether queues can have limits per partition in columns of their own (DBOS Python 2.31)."""
        return self.has("queues", "partition_concurrency")


def schema_of(name: str, columns: Iterable[tuple[str, str, bool]], indexes: Iterable[Index], *, role: str) -> Schema:
    """Judge a schema.

    Args:
        name: Its name.
        columns: (table, column, readable by the role) of the tables in `TABLES`.
        indexes: The valid indexes of `workflow_status`.
        role: Who reads, for messages.

    Raises:
        SchemaUnreadableError: A table or column that the numbers need does not exist.
        PermissionDeniedError: It exists, but the role may not read it.
    """
    present: dict[str, dict[str, bool]] = {}
    for table, column, readable in columns:
        present.setdefault(table, {})[column] = readable
    _check_needed(name, present, role)
    readable_columns = {table: frozenset(c for c, ok in cols.items() if ok) for table, cols in present.items()}
    usable = {
        table: readable_columns[table]
        for table, needed in (("workflow_status", ()), ("queues", _QUEUES), ("application_versions", _VERSIONS))
        if table in readable_columns and readable_columns[table].issuperset(needed)
    }
    indexes = tuple(indexes)
    started_index = any(index.key_columns[:3] == ("queue_name", "status", "started_at_epoch_ms") for index in indexes)
    queue_index = any(index.key_columns[:2] == ("queue_name", "status") for index in indexes)
    counts_as_start = "status = 'PENDING'"
    if "rate_limited" in usable["workflow_status"]:
        counts_as_start = "rate_limited = TRUE AND status NOT IN ('ENQUEUED', 'DELAYED')"
    elif started_index:
        # What DBOS Python 2.4 to 2.19 counted; rows in other statuses have lost their started_at_epoch_ms.
        counts_as_start = "status IN ('PENDING', 'SUCCESS', 'ERROR')"
    notes = (
        *_missing(present, usable, role),
        *_index_notes(indexes, exact_starts=counts_as_start != "status = 'PENDING'"),
    )
    return Schema(
        name=name,
        readable=usable,
        counts_as_start=counts_as_start,
        # DBOS Python 1.3 to 2.3 has no index on queue and status, but one on queue_name and deduplication_id, which
        # holds every finished workflow of the queue. An expression keeps plans from it.
        searched_queue="queue_name" if queue_index else "(queue_name || '')",
        unregistered_may_run="workflow_input" not in present,
        notes=notes,
    )


def _check_needed(name: str, present: Mapping[str, Mapping[str, bool]], role: str) -> None:
    for table, needed in _NEEDED.items():
        columns = present.get(table)
        if columns is None:
            raise SchemaUnreadableError(
                f'there is no table "{name}".{table}: set QUEUE_DEPTH_SCHEMA to the DBOS system schema and the '
                "database URL to the DBOS system database (often <application>_dbos_sys), or start the application "
                "once so that DBOS creates it"
            )
        missing = [column for column in needed if column not in columns]
        if missing:
            raise SchemaUnreadableError(
                f'"{name}".{table} has no column {", ".join(missing)}: '
                "this schema is older than DBOS Python 1.3 and TypeScript 2.10; upgrade DBOS"
            )
        denied = [column for column in needed if not columns[column]]
        if denied:
            raise PermissionDeniedError(
                f'role "{role}" may not read {", ".join(denied)} of "{name}".{table}: '
                "grant it with the script that `queue-depth grants` prints"
            )


_WHOLE_TABLES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "queues": (
        _QUEUES,
        (
            "limits of queues are unknown; runnable and wanted_replicas ignore them, "
            "set them under `queues` in the configuration"
        ),
    ),
    "application_versions": (_VERSIONS, "the latest version is unknown; work of any version counts as runnable"),
}
"""Tables that are read as a whole or not at all, and the effect of the latter."""

_COLUMNS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        tuple(f"{table}.application_name" for table in READABLE),
        "applications that share this database cannot be told apart; every row counts for every pool",
    ),
    (("workflow_status.queue_partition_key",), "there are no partitioned queues"),
    (("workflow_status.delay_until_epoch_ms",), "there are no delayed workflows"),
    (
        tuple(f"queues.{column}" for column in _PARTITION_LIMITS),
        "limits of partitioned queues are read from the whole queue's, as this DBOS does",
    ),
)
"""Single columns, and the effect when one of them cannot be read."""


def _missing(
    present: Mapping[str, Mapping[str, bool]], usable: Mapping[str, frozenset[str]], role: str
) -> Iterable[SchemaNote]:
    may_read = {f"{table}.{column}": may for table, columns in present.items() for column, may in columns.items()}

    def note(names: Iterable[str], effect: str) -> Iterable[SchemaNote]:
        absent = [name for name in names if name not in may_read]
        denied = [name for name in names if may_read.get(name) is False]
        if absent:
            yield SchemaNote(f"no {absent[0]}", effect)
        elif denied:
            mend = "run the script that `queue-depth grants` prints again"
            yield SchemaNote(f'role "{role}" may not read {", ".join(denied)} ({mend})', effect)

    for table, (columns, effect) in _WHOLE_TABLES.items():
        if table not in present:
            yield SchemaNote(f"no table {table}", effect)
        elif table not in usable:
            yield from note([f"{table}.{column}" for column in columns], effect)
    for names, effect in _COLUMNS:
        yield from note([name for name in names if name.partition(".")[0] in usable], effect)


def _index_notes(indexes: tuple[Index, ...], *, exact_starts: bool) -> Iterable[SchemaNote]:
    finds_unfinished = any(
        # An index with a further condition holds only some of the rows.
        ("'ENQUEUED'" in index.predicate and "'PENDING'" in index.predicate and " AND " not in index.predicate)
        or (not index.predicate and index.key_columns[:1] == ("status",))
        for index in indexes
    )
    if not finds_unfinished:
        yield SchemaNote(
            "no index on the status of workflow_status", "each refresh reads the whole table; restore DBOS's indexes"
        )
    if not exact_starts:
        yield SchemaNote(
            "no workflow_status.rate_limited, nor an index on started_at_epoch_ms",
            "starts that have finished are not counted against a rate limit; runnable may be too high",
        )
