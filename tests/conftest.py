"""Fixtures that every test may use: a real PostgreSQL, and databases with the tables of any DBOS."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from harness.postgres import PostgresServer
from harness.schemas import DatabaseFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCRUBBED = ("PG", "QUEUE_DEPTH_", "DBOS_")
KEPT = "QUEUE_DEPTH_TEST_CACHE"

# Before any test module is imported, and for the session fixtures too: what the developer's shell has must not
# decide what a test sees.
for _name in [name for name in os.environ if name.startswith(SCRUBBED) and name != KEPT]:
    del os.environ[_name]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL 18, one for each pytest-xdist worker; start your own server to break it."""
    with PostgresServer(18) as server:
        yield server


@pytest.fixture(scope="session")
def _databases(postgres: PostgresServer) -> DatabaseFactory:
    return DatabaseFactory(postgres)


@pytest.fixture
def database_of(_databases: DatabaseFactory) -> Iterator[Callable[..., str]]:
    """Make fresh databases: `database_of("2.14.0")`, `database_of("go-1.8.0")`, `database_of(schema="x")`.

    Each call returns the URI of a new database with the tables of that DBOS version or recorded schema, and
    without rows. All are dropped after the test.
    """
    yield _databases.make
    _databases.drop_all()


@pytest.fixture
def empty_database(_databases: DatabaseFactory) -> Iterator[str]:
    """URI of a fresh database without any tables."""
    yield _databases.empty()
    _databases.drop_all()


@pytest.fixture
def dbos_database(database_of: Callable[..., str]) -> str:
    """URI of a fresh database with the tables of DBOS 3.4.0, without rows."""
    return database_of("3.4.0")
