"""The whole service while its database comes and goes: what KEDA, Prometheus and the kubelet are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from harness.exporter import Exporter
from harness.postgres import PostgresServer
from harness.promtool import check_metrics
from harness.rows import insert_queue, insert_workflows
from harness.schemas import DatabaseFactory
from harness.waiting import wait_until
from queue_depth.contract import published
from queue_depth.contract.published import SCHEMA_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

CONTRACT: Registry[Any] = Registry().with_resources(
    (published.schema(name)["$id"], Resource.from_contents(published.schema(name))) for name in SCHEMA_NAMES
)
EMAILS = "/dbos-queue-depth/emails"
OF_THE_MOMENT = {"observed_at", "age_seconds", "oldest_enqueued_seconds"}
"""Fields that change with the time of the read."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer(18) as running:
        yield running


@pytest.fixture
def database(server: PostgresServer) -> str:
    dsn = DatabaseFactory(server).make("3.4.0")
    insert_queue(dsn, "emails", worker_concurrency=4)
    insert_workflows(dsn, count=7, queue_name="emails")
    insert_workflows(dsn, count=5, queue_name="emails", status="PENDING", executor_id="pod-1")
    insert_workflows(dsn, count=2, queue_name="emails", status="PENDING", executor_id="pod-2")
    return dsn


@pytest.fixture
def exporter(database: str) -> Iterator[Exporter]:
    with _exporter(database) as running:
        running.wait_until_ready()
        yield running


def _exporter(database: str) -> Exporter:
    return Exporter(
        environ={
            "QUEUE_DEPTH_DATABASE_URL": database,
            "QUEUE_DEPTH_REFRESH_SECONDS": "0.2",
            "QUEUE_DEPTH_MAX_AGE_SECONDS": "1",
            "QUEUE_DEPTH_STATEMENT_TIMEOUT_SECONDS": "0.5",
        }
    )


def validate(answer: httpx.Response, schema: published.SchemaName) -> dict[str, Any]:
    body = published.strict_json(answer.text)
    assert isinstance(body, dict)
    Draft202012Validator(published.schema(schema), registry=CONTRACT).validate(body)
    return body


def numbers(exporter: Exporter, path: str = EMAILS) -> dict[str, Any]:
    answer = exporter.get(path)
    assert answer.status_code == 200, answer.text
    body = validate(answer, "queue-depth")
    return {field: value for field, value in body.items() if field not in OF_THE_MOMENT}


def test_every_replica_gives_the_same_answers(exporter: Exporter, database: str) -> None:
    with _exporter(database) as other:
        other.wait_until_ready()
        for path in (EMAILS, "/v1/queues/emails", "/v1/pools/emails"):
            assert numbers(exporter, path) == numbers(other, path)
    assert numbers(exporter)["wanted_replicas"] == 4
    assert numbers(exporter)["floor_replicas"] == 2


def test_every_kind_of_answer_is_as_the_contract_says(exporter: Exporter) -> None:
    validate(exporter.get("/v1/queues"), "queues")
    validate(exporter.get("/v1/pools"), "pools")
    for path, status in (("/v1/queues/nobodys", 404), ("/nowhere", 404), ("/v1/queues?limit=0", 400)):
        answer = exporter.get(path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        validate(answer, "problem")


def test_prometheus_finds_no_fault_with_the_metrics(exporter: Exporter) -> None:
    assert check_metrics(exporter.get("/metrics").text) == ""


@pytest.mark.parametrize(
    ("spoil", "mend", "reason"),
    [("kill", "start", "database_unreachable"), ("pause", "resume", "timeout")],
)
def test_a_lost_database_is_a_503_with_its_cause_until_it_is_back(
    exporter: Exporter, server: PostgresServer, spoil: str, mend: str, reason: str
) -> None:
    before = numbers(exporter)
    getattr(server, spoil)()
    lost = wait_until(lambda: answer if (answer := exporter.get(EMAILS)).status_code == 503 else None)
    wait_until(lambda: validate(exporter.get(EMAILS), "problem")["reason"] == reason, message=reason)
    assert lost is not None
    assert "retry-after" in lost.headers
    assert exporter.get("/livez").status_code == 200, "no restart of the exporter mends a database"
    assert exporter.get("/readyz").status_code == 200
    metrics = exporter.get("/metrics").text
    assert "\nqueue_depth_up 0.0\n" in metrics
    assert "\ndbos_" not in metrics, "a depth in doubt is absent"
    getattr(server, mend)()
    wait_until(lambda: exporter.get(EMAILS).status_code == 200, message="it recovers without a restart")
    assert numbers(exporter) == before
    assert "\nqueue_depth_up 1.0\n" in exporter.get("/metrics").text
