"""Databases with the tables of any DBOS: templates made once per server, cloned for each test."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness import dump
from harness.cache import cached
from harness.dbos_versions import LAUNCHER, VERSIONS, launch_schema

if TYPE_CHECKING:
    from harness.postgres import PostgresServer

FOLDER = Path(__file__).parent.parent / "schemas"

DUMPS = tuple(sorted(path.stem for path in FOLDER.glob("*.sql")))
"""Names of the recorded schemas of the other SDKs, such as `go-1.8.0`."""

ALL_SCHEMAS = (*VERSIONS, *DUMPS)
"""Everything `DatabaseFactory` can make a database of."""

_numbers = itertools.count()


def load_dump(name: str, dsn: str) -> None:
    """Load a recorded schema, one of `DUMPS`, into an empty database."""
    dump.load((FOLDER / f"{name}.sql").read_text(), dsn)


@dataclass(slots=True)
class DatabaseFactory:
    """Makes databases on one server; the first of each kind makes the template that the others copy."""

    server: PostgresServer
    _templates: dict[tuple[str, str], str] = field(default_factory=dict)
    _made: list[str] = field(default_factory=list)

    def make(self, source: str = "3.4.0", schema: str = "dbos") -> str:
        """Return the URI of a new database without rows.

        Args:
            source: A DBOS version of `VERSIONS` or a recorded schema of `DUMPS`.
            schema: Name of the schema with DBOS' tables.
        """
        template = self._templates.get((source, schema))
        if template is None:
            template = self._templates[source, schema] = self._make_template(source, schema)
        return self.empty(template)

    def empty(self, template: str | None = None) -> str:
        """Return the URI of a new database without any tables (or a copy of a given one)."""
        name = f"test_{next(_numbers)}"
        self._made.append(name)
        return self.server.create_database(name, template)

    def drop_all(self) -> None:
        """Drop every database made since the last call; the templates stay."""
        while self._made:
            self.server.drop_database(self._made.pop())

    def _make_template(self, source: str, schema: str) -> str:
        name = f"template_{next(_numbers)}"
        dsn = self.server.create_database(name)
        if source in DUMPS:
            assert schema == "dbos", "dumps are of the schema dbos: their functions name it"
            load_dump(source, dsn)
        else:
            dump.load(self._launched(source, schema), dsn)
        return name

    def _launched(self, version: str, schema: str) -> str:
        """Return the SQL of a database that this version was launched on, launching it once per cache."""
        recipe = hashlib.sha256(LAUNCHER.read_bytes() + Path(dump.__file__).read_bytes()).hexdigest()[:12]
        key = f"schema-{version}-{quote(schema, safe='')}-postgres-{self.server.major}-{recipe}"
        return (cached(key, partial(self._launch, version, schema)) / "dump.sql").read_text()

    def _launch(self, version: str, schema: str, folder: Path) -> None:
        name = f"launched_{next(_numbers)}"
        dsn = self.server.create_database(name)
        launch_schema(version, dsn, schema=None if schema == "dbos" else schema)
        dump.remove_rows(dsn, schema)
        (folder / "dump.sql").write_text(dump.dumped(dsn))
        self.server.drop_database(name)
