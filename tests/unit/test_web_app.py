from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator
from prometheus_client.parser import text_string_to_metric_families as parse_text
from referencing import Registry, Resource

from harness.reads import enqueued, pending, read
from harness.stores import Clock, empty_store, publish, store_of
from harness.web import app_over, client_of
from queue_depth.contract import published, routes
from queue_depth.core import errors
from queue_depth.core.limits import QueueLimits
from queue_depth.core.pool import Pool
from queue_depth.web.app import create_app
from queue_depth.web.auth import TokenFile
from queue_depth.web.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

    from queue_depth.contract.published import SchemaName
    from queue_depth.store import SnapshotStore

TOKEN = "right-token"
NAMES = [
    "emails",
    "a.b.c",
    "a/b",
    "/",
    "a b",
    " ",
    "100%",
    "%2F",
    "..",
    ".",
    "grüße/日本 #1?",
    "v1",
    "queues",
    "'; DROP TABLE x; --",
    'q"uote\\',
    "a+b&c=d",
    "line\nbreak",
]
PROBES = ("/livez", "/healthz", "/readyz")
PROTECTED = (
    "/dbos-queue-depth/emails",
    "/v1/queues/emails",
    "/v1/pools/shop",
    "/v1/queues",
    "/v1/pools",
    "/metrics",
    "/v1/queues/nope",
    "/nothing",
)
UNKNOWN = ("/v1/queues/nope", "/nothing")
READ_ERRORS = [
    errors.DatabaseUnreachableError,
    errors.AuthenticationFailedError,
    errors.PermissionDeniedError,
    errors.ReadTimeoutError,
    errors.SchemaUnreadableError,
    errors.ReadError,
]


def validate(schema: SchemaName, answer: object) -> None:
    contents = [published.schema(name) for name in published.SCHEMA_NAMES]
    registry: Registry[Any] = Registry().with_resources(
        (content["$id"], Resource.from_contents(content)) for content in contents
    )
    Draft202012Validator(published.schema(schema), registry=registry).validate(answer)


def problem_of(response: httpx.Response, status: int, reason: str) -> dict[str, Any]:
    """The problem document, checked: the contract holds, and no field could be taken for a number of a good answer."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    problem: dict[str, Any] = response.json()
    validate("problem", problem)
    assert problem["type"] == f"urn:queue-depth:problem:{reason}"
    assert (problem["status"], problem["reason"]) == (status, reason)
    assert not set(problem) & {name for name, field in published.fields().items() if field.type == "integer"}
    assert [name for name, found in problem.items() if not isinstance(found, str)] == ["status"]
    return problem


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> SnapshotStore:
    table = read(
        *(enqueued(2, name) for name in NAMES),
        pending(4, "emails"),
        limits={name: QueueLimits(worker_concurrency=2) for name in (*NAMES, "idle")},
    )
    return store_of(table, {"shop": Pool("shop", queues=frozenset({"emails", "idle"}))}, clock)


@pytest.fixture
async def client(store: SnapshotStore) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app_over(store)) as client:
        yield client


@pytest.fixture
async def guarded(store: SnapshotStore, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    (tmp_path / "tokens").write_text(f"{TOKEN}\nsecond-token\n")
    async with client_of(app_over(store, tokens=TokenFile(tmp_path / "tokens"))) as client:
        yield client


@pytest.mark.parametrize("prefix", ["/dbos-queue-depth", "/v1/queues", "/v1/pools"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_queue_of_any_name_is_found_by_its_encoded_name(
    client: httpx.AsyncClient, prefix: str, name: str
) -> None:
    # `quote` leaves dots alone and a client would take `..` for a step up.
    encoded = quote(name, safe="").replace(".", "%2E")
    response = await client.get(f"{prefix}/{encoded}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    answer = response.json()
    validate("queue-depth", answer)
    assert (answer["name"], answer["queue_length"]) == (name, 2)


async def test_a_registered_queue_without_rows_is_all_zeros(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/dbos-queue-depth/idle")).json()
    validate("queue-depth", answer)
    told = {name: found for name, found in answer.items() if name not in {"name", "observed_at", "worker_concurrency"}}
    assert {found for name, found in told.items() if name not in {"scalable", "reason"}} == {0}
    assert (answer["scalable"], answer["reason"]) == (True, "")


async def test_a_pool_sums_its_queues(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/v1/pools/shop")).json()
    validate("queue-depth", answer)
    assert (answer["name"], answer["queue_length"], answer["in_flight"]) == ("shop", 2, 4)
    assert "worker_concurrency" not in answer


async def test_the_age_grows_with_the_clock(client: httpx.AsyncClient, clock: Clock) -> None:
    clock.now = 12.5
    assert (await client.get("/v1/queues/emails")).json()["age_seconds"] == 13


async def test_a_query_string_on_a_single_number_changes_nothing(client: httpx.AsyncClient) -> None:
    bare = await client.get("/v1/queues/emails")
    asked = await client.get("/v1/queues/emails?limit=x&after=%FF&api_key=abc")
    assert asked.content == bare.content


async def test_an_unknown_queue_is_404_and_says_how_to_mend_it(client: httpx.AsyncClient) -> None:
    for prefix in ("/dbos-queue-depth", "/v1/queues"):
        problem = problem_of(await client.get(f"{prefix}/emials"), 404, "unknown_queue")
        assert "`emials`" in problem["detail"]
        assert "/v1/queues" in problem["detail"]
        assert "emails" not in problem["detail"]


async def test_a_pool_is_no_queue(client: httpx.AsyncClient) -> None:
    problem_of(await client.get("/v1/queues/shop"), 404, "unknown_queue")


async def test_an_unknown_pool_is_404_and_says_how_to_mend_it(client: httpx.AsyncClient) -> None:
    problem = problem_of(await client.get("/v1/pools/ship"), 404, "unknown_pool")
    assert "pools in the configuration" in problem["detail"]


async def test_a_very_long_unknown_name_is_not_sent_back_whole(client: httpx.AsyncClient) -> None:
    problem = problem_of(await client.get("/v1/queues/" + "x" * 5000), 404, "unknown_queue")
    assert len(problem["detail"]) < 600


@pytest.mark.parametrize("segment", ["%FF", "%C3"])
async def test_a_name_that_is_no_text_is_a_bad_request(client: httpx.AsyncClient, segment: str) -> None:
    problem_of(await client.get(f"/v1/queues/{segment}"), 400, "bad_request")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/queues/",
        "/v1/pools/",
        "/dbos-queue-depth",
        "/dbos-queue-depth/",
        "/dbos-queue-depth/emails/",
        "/v1/queues/a/b",
        "/v1//queues",
        "//v1/queues",
        "/V1/queues",
        "/v1/queues%2Femails",
        "/metrics/",
        "/livez/",
        "/readyz/",
        "/docs",
        "/openapi.json",
    ],
)
async def test_any_other_path_is_404_without_a_redirect(client: httpx.AsyncClient, path: str) -> None:
    problem_of(await client.get(f"http://exporter{path}"), 404, "not_found")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/v1/queues/emails", "/v1/queues", "/metrics", "/livez", "/readyz"])
async def test_other_methods_are_told_which_are_answered(client: httpx.AsyncClient, method: str, path: str) -> None:
    response = await client.request(method, path, content=b"{}" if method == "POST" else None)
    problem_of(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path", ["/v1/queues/emails", "/dbos-queue-depth/nope", "/v1/queues", "/livez", "/readyz?verbose", "/nothing"]
)
async def test_head_has_the_headers_of_get_and_no_body(client: httpx.AsyncClient, path: str) -> None:
    get, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.headers) == (get.status_code, get.headers)
    assert int(head.headers["content-length"]) == len(get.content) > 0
    assert head.content == b""


@pytest.mark.parametrize("path", ["/v1/queues/emails", "/v1/pools/shop", "/v1/queues", "/v1/pools"])
async def test_before_the_first_snapshot_there_is_no_number(path: str) -> None:
    async with client_of(app_over(empty_store())) as client:
        response = await client.get(path)
    problem_of(response, 503, "not_ready")
    assert response.headers["retry-after"] == "5"


async def test_a_snapshot_that_is_too_old_is_not_served(client: httpx.AsyncClient, clock: Clock) -> None:
    clock.now = 30.0
    assert (await client.get("/v1/queues/emails")).status_code == 200
    clock.now = 30.1
    response = await client.get("/v1/queues/emails")
    problem = problem_of(response, 503, "stale")
    assert "the limit is 30 s" in problem["detail"]
    assert response.headers["retry-after"] == "5"


@pytest.mark.parametrize("failure", READ_ERRORS)
async def test_what_keeps_the_exporter_from_knowing_is_the_reason(failure: type[errors.ReadError]) -> None:
    store = empty_store()
    store.attempt_started()
    store.failed(failure("host db:5432 says no"))
    async with client_of(app_over(store)) as client:
        problem = problem_of(await client.get("/v1/queues/q"), 503, failure.reason)
    assert "host db:5432 says no" in problem["detail"]


def test_every_reason_of_a_failed_read_has_a_problem_and_every_problem_is_in_the_contract() -> None:
    reasons = published.schema("problem")["properties"]["reason"]["enum"]
    for reason in {*reasons, *errors.REASONS}:
        validate("problem", json.loads(bytes(ProblemError(reason, "x").response().body)))


async def test_a_failed_refresh_takes_nothing_away_while_the_snapshot_is_young(
    client: httpx.AsyncClient, store: SnapshotStore
) -> None:
    store.attempt_started()
    store.failed(errors.DatabaseUnreachableError("refused"))
    assert (await client.get("/v1/queues/emails")).status_code == 200


async def test_a_list_holds_what_the_single_answers_hold(client: httpx.AsyncClient) -> None:
    queues = (await client.get("/v1/queues")).json()
    validate("queues", queues)
    assert [item["name"] for item in queues["queues"]] == sorted([*NAMES, "idle"])
    assert queues["next"] == ""
    for item in queues["queues"]:
        encoded = quote(item["name"], safe="").replace(".", "%2E")
        assert (await client.get(f"/v1/queues/{encoded}")).json() == item


async def test_the_pools_are_the_configured_ones_and_every_queue(client: httpx.AsyncClient) -> None:
    pools = (await client.get("/v1/pools")).json()
    validate("pools", pools)
    assert [item["name"] for item in pools["pools"]] == sorted([*NAMES, "idle", "shop"])


async def test_pages_follow_each_other_by_name(client: httpx.AsyncClient) -> None:
    seen: list[str] = []
    after = ""
    while True:
        page = (await client.get("/v1/queues", params={"limit": 4, "after": after})).json()
        validate("queues", page)
        assert len(page["queues"]) <= 4
        seen += [item["name"] for item in page["queues"]]
        after = page["next"]
        if not after:
            break
    assert seen == sorted([*NAMES, "idle"])


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "", "ten", "1.0", "\u0661", "99999999999999999999", "+5", " 5"])
async def test_a_limit_out_of_range_is_a_bad_request(client: httpx.AsyncClient, limit: str) -> None:
    problem = problem_of(await client.get("/v1/pools", params={"limit": limit}), 400, "bad_request")
    assert problem["detail"] == "limit must be a whole number from 1 to 1000."


async def test_a_page_holds_at_most_a_thousand_names_and_others_get_their_turn_meanwhile() -> None:
    store = store_of(read(*(enqueued(1, f"q{number:05}") for number in range(3000)), limits={}))
    async with client_of(app_over(store)) as client:
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        other = asyncio.create_task(take_turns())
        page = (await client.get("/v1/queues")).json()
        other.cancel()
    assert len(page["queues"]) == 1000
    assert page["next"] == "q00999"
    assert turns > 10


@pytest.mark.parametrize("path", PROTECTED)
async def test_with_tokens_set_nothing_but_the_probes_answers_a_stranger(guarded: httpx.AsyncClient, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong-token"}, {"X-API-KEY": "wrong-token"}):
        response = await guarded.get(path, headers=headers)
        problem = problem_of(response, 401, "unauthorized")
        assert response.headers["www-authenticate"] == 'Bearer realm="queue-depth"'
        assert "wrong-token" not in json.dumps(problem)
        assert TOKEN not in json.dumps(problem)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": "bearer second-token"},
        {"X-API-KEY": TOKEN},
        {"X-API-KEY": "second-token", "Authorization": "Bearer wrong-token"},
    ],
)
async def test_every_token_of_the_file_opens_every_path(guarded: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for path in (*PROTECTED, "/readyz?verbose"):
        response = await guarded.get(path, headers=headers)
        assert response.status_code == (404 if path in UNKNOWN else 200)


async def test_a_token_in_the_query_string_is_none(guarded: httpx.AsyncClient) -> None:
    problem_of(await guarded.get(f"/v1/queues?api_key={TOKEN}"), 401, "unauthorized")


async def test_probes_need_no_token_and_their_explanation_does(guarded: httpx.AsyncClient) -> None:
    assert [(await guarded.get(path)).status_code for path in PROBES] == [200, 200, 200]
    problem_of(await guarded.get("/readyz?verbose"), 401, "unauthorized")


async def test_a_missing_tokens_file_closes_everything_but_the_probes(store: SnapshotStore, tmp_path: Path) -> None:
    async with client_of(app_over(store, tokens=TokenFile(tmp_path / "absent"))) as client:
        problem_of(await client.get("/v1/queues", headers={"Authorization": "Bearer "}), 401, "unauthorized")
        assert (await client.get("/livez")).status_code == 200


async def test_probes_answer_in_plain_text(client: httpx.AsyncClient) -> None:
    for path in PROBES:
        response = await client.get(path)
        assert (response.status_code, response.text) == (200, "ok\n")
        assert response.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_dead_database_fails_readiness_before_the_first_snapshot_and_never_liveness() -> None:
    clock = Clock()
    store = empty_store(clock)
    async with client_of(app_over(store)) as client:
        for clock.now in (0.0, 3600.0):
            store.attempt_started()
            store.failed(errors.DatabaseUnreachableError("refused"))
            statuses = [(await client.get(path)).status_code for path in PROBES]
            assert statuses == [200, 200, 503]
        publish(store, read())
        clock.now = 7200.0
        store.attempt_started()
        store.failed(errors.DatabaseUnreachableError("refused"))
        statuses = [(await client.get(path)).status_code for path in (*PROBES, "/readyz?verbose", "/v1/queues/q")]
        assert statuses == [200, 200, 200, 200, 503]


async def test_a_poller_that_stopped_fails_liveness_only(client: httpx.AsyncClient, clock: Clock) -> None:
    clock.now = 96.0
    assert [(await client.get(path)).status_code for path in PROBES] == [503, 503, 200]


async def test_readyz_explains_itself_when_asked(client: httpx.AsyncClient) -> None:
    for path in ("/readyz?verbose", "/readyz?verbose=1"):
        response = await client.get(path)
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        assert response.text.startswith("ready: yes\n")


async def test_a_scrape_gets_the_negotiated_format_and_counts_requests_by_route_only(
    client: httpx.AsyncClient,
) -> None:
    for path in ("/v1/queues/emails", "/v1/queues/idle", "/v1/queues/emials", "/some/secret/path", "/livez"):
        await client.get(path)
    response = await client.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    response = await client.get("/metrics", headers={"Accept": "*/*"})
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    counted = {
        (sample.labels["route"], sample.labels["code"]): sample.value
        for family in parse_text(response.text)
        for sample in family.samples
        if sample.name == "queue_depth_http_requests_total"
    }
    assert counted == {
        ("/v1/queues/{queue}", "200"): 2,
        ("/v1/queues/{queue}", "404"): 1,
        ("other", "404"): 1,
        ("/livez", "200"): 1,
        ("/metrics", "200"): 1,
    }


async def test_a_defect_is_a_500_without_internals_and_one_log_line(
    store: SnapshotStore, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def render(self, accept: str | None) -> tuple[bytes, str]:
            raise LookupError(f"internals of {accept}")

        def count_request(self, route: str, code: int) -> None:
            counted.append((route, code))

    counted: list[tuple[str, int]] = []
    app = create_app(store=store, exposition=Broken(), tokens=None, refresh_seconds=5.0)
    async with client_of(app) as client:
        problem = problem_of(await client.get("/metrics"), 500, "internal_error")
    assert "internals" not in json.dumps(problem)
    assert [(record.levelno, record.exc_info is not None) for record in caplog.records] == [(logging.ERROR, True)]
    assert counted == [("/metrics", 500)]


async def test_the_routes_of_the_contract_are_served_and_read_the_same_names(client: httpx.AsyncClient) -> None:
    for route in routes.ROUTES:
        for name in NAMES if "{" in route.template else [""]:
            head, brace, _ = route.template.partition("{")
            path = head + (quote(name, safe="").replace(".", "%2E") if brace else "")
            assert routes.find(path) == (route, name)
            response = await client.get(path)
            assert response.status_code == 200
            validate(route.schema, response.json())
