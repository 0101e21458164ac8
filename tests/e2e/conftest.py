"""One cluster for all tests, and for each a namespace with an application."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import worker
from shop import EXPORTER_IMAGE, SYNC_SECONDS, WORKER_IMAGE, Shop

from cluster import prepared
from cluster.cluster import Cluster
from cluster.images import python_image
from cluster.sandbox import PODS
from harness.postgres import TRUST_EVERYONE, PostgresServer
from harness.schemas import DatabaseFactory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.prepared import Prepared

FAILED = pytest.StashKey[bool]()

WORKER = Path(worker.__file__)
TRUST_PODS = (*TRUST_EVERYONE, f"host all all {PODS} trust")


def pytest_configure() -> None:
    if prepared.found() is None:
        raise pytest.UsageError("these tests need a cluster around them: run `make e2e`")


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
    workers = python_image(sys.executable, WORKER, environment=Path(sys.prefix), folders=(WORKER.parent,))
    images = {EXPORTER_IMAGE: prepared_cluster.exporter, WORKER_IMAGE: workers}
    folder, logs = prepared_cluster.folder, prepared_cluster.logs
    running = Cluster(prepared_cluster.programs, images, folder, logs, hpa_sync_seconds=SYNC_SECONDS)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with _server() as server:
        yield server


@pytest.fixture
def shop(cluster: Cluster, dbos_database: str, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """An application in a namespace named after the test, without queues, workers or exporter yet."""
    with _shop(cluster, dbos_database, request.node) as made:
        yield made


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that the test may break."""
    with _server() as server:
        yield server


@pytest.fixture
def shop_on_its_own_server(
    cluster: Cluster, own_postgres: PostgresServer, request: pytest.FixtureRequest
) -> Iterator[Shop]:
    """An application like `shop`, whose database may be broken."""
    with _shop(cluster, DatabaseFactory(own_postgres).make(), request.node) as made:
        yield made


def _server() -> PostgresServer:
    return PostgresServer(18, settings={"listen_addresses": "*", "max_connections": "300"}, hba=TRUST_PODS)


@contextmanager
def _shop(cluster: Cluster, dsn: str, test: pytest.Item) -> Iterator[Shop]:
    cluster.check()
    namespace = re.sub(r"[^a-z0-9]+", "-", test.name.removeprefix("test_").lower())[-50:].strip("-")
    cluster.make_namespace(namespace)
    made = Shop(cluster, namespace, dsn)
    yield made
    made.close()
    if test.stash.get(FAILED, False):
        print(f"objects and logs of the pods: {cluster.dump(namespace)}")
    cluster.remove_namespace(namespace)
