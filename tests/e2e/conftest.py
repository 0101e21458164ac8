"""One cluster for all tests, and for each a namespace with an application."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import worker
from shop import SYNC_SECONDS, Shop, server_for_pods, start_cluster

from cluster import prepared
from cluster.cluster import Cluster, StartedCluster
from harness.schemas import DatabaseFactory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.prepared import Prepared
    from harness.postgres import PostgresServer

FAILED = pytest.StashKey[bool]()
CONNECTIONS = 300

STARTED = pytest.StashKey[StartedCluster]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the cluster, once for all of pytest-xdist's workers."""
    here = prepared.found()
    if here is None:
        raise pytest.UsageError("these tests need a cluster around them: run `make e2e`")
    if not hasattr(session.config, "workerinput"):  # as pytest-xdist marks its workers
        session.config.stash[STARTED] = start_cluster(here, Path(worker.__file__), SYNC_SECONDS)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """See that no part of the cluster fell over, and stop it."""
    started = session.config.stash.get(STARTED, None)
    if started is not None:
        started.check()
        started.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed  # type: ignore[attr-defined]
    return report


@pytest.fixture(scope="session")
def prepared_cluster() -> Prepared:
    found = prepared.found()
    assert found is not None
    return found


@pytest.fixture(scope="session")
def cluster(prepared_cluster: Prepared) -> Iterator[Cluster]:
    running = Cluster(prepared_cluster.programs, prepared_cluster.folder, prepared_cluster.logs)
    yield running
    running.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with server_for_pods(CONNECTIONS) as server:
        yield server


@pytest.fixture
def shop(cluster: Cluster, dbos_database: str, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """An application in a namespace named after the test, without queues, workers or exporter yet."""
    with _shop(cluster, dbos_database, request.node) as made:
        yield made


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that the test may break."""
    with server_for_pods(CONNECTIONS) as server:
        yield server


@pytest.fixture
def shop_on_its_own_server(
    cluster: Cluster, own_postgres: PostgresServer, request: pytest.FixtureRequest
) -> Iterator[Shop]:
    """An application like `shop`, whose database may be broken."""
    with _shop(cluster, DatabaseFactory(own_postgres).make(), request.node) as made:
        yield made


@contextmanager
def _shop(cluster: Cluster, dsn: str, test: pytest.Item) -> Iterator[Shop]:
    namespace = re.sub(r"[^a-z0-9]+", "-", test.name.removeprefix("test_").lower())[-50:].strip("-")
    cluster.make_namespace(namespace)
    made = Shop(cluster, namespace, dsn)
    yield made
    made.close()
    if test.stash.get(FAILED, False):
        print(f"objects and logs of the pods: {cluster.dump(namespace)}")
    cluster.remove_namespace(namespace)
