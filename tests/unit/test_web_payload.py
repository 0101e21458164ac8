from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.reads import OBSERVED_AT_MS, enqueued, pending, read
from queue_depth.contract import published
from queue_depth.core.depth import PoolDepth
from queue_depth.core.limits import QueueLimits
from queue_depth.core.snapshot import Snapshot
from queue_depth.web.payload import depth_json, page_json

DEPTH = PoolDepth(
    name="emails",
    queue_length=1,
    in_flight=2,
    runnable=3,
    busy_workers=4,
    floor_replicas=5,
    wanted_replicas=6,
    stranded=7,
    oldest_ms=OBSERVED_AT_MS - 8999,
    other_in_flight=9,
    delayed=10,
    delayed_due=11,
    scalable=True,
    reason="",
    executor_ids_shared=False,
    worker_concurrency=12,
)


def payload(depth: PoolDepth, age_seconds: float = 2.0) -> dict[str, Any]:
    body = depth_json(depth, observed_at_ms=OBSERVED_AT_MS, age_seconds=age_seconds)
    parsed: dict[str, Any] = json.loads(body)
    return parsed


def test_the_answer_has_the_fields_of_the_contract_in_its_order_and_each_from_its_own_number() -> None:
    assert list(payload(DEPTH).items()) == [
        ("name", "emails"),
        ("queue_length", 1),
        ("in_flight", 2),
        ("runnable", 3),
        ("busy_workers", 4),
        ("floor_replicas", 5),
        ("wanted_replicas", 6),
        ("stranded", 7),
        ("oldest_enqueued_seconds", 8),
        ("other_in_flight", 9),
        ("delayed", 10),
        ("delayed_due", 11),
        ("scalable", True),
        ("reason", ""),
        ("executor_ids_shared", False),
        ("observed_at", OBSERVED_AT_MS // 1000),
        ("age_seconds", 2),
        ("worker_concurrency", 12),
    ]
    assert list(payload(DEPTH)) == list(published.fields())


@pytest.mark.parametrize("unknown", [None, 0])
def test_a_worker_concurrency_that_divides_nothing_is_absent(unknown: int | None) -> None:
    assert "worker_concurrency" not in payload(replace(DEPTH, worker_concurrency=unknown))


@pytest.mark.parametrize(("oldest_ms", "seconds"), [(None, 0), (OBSERVED_AT_MS, 0), (OBSERVED_AT_MS + 90_000, 0)])
def test_a_wait_is_never_below_zero(oldest_ms: int | None, seconds: int) -> None:
    assert payload(replace(DEPTH, oldest_ms=oldest_ms))["oldest_enqueued_seconds"] == seconds


@pytest.mark.parametrize(("age", "shown"), [(0.0, 0), (0.001, 1), (1.0, 1), (29.2, 30)])
def test_the_age_is_rounded_up(age: float, shown: int) -> None:
    assert payload(DEPTH, age)["age_seconds"] == shown


@given(
    st.text(min_size=1),
    st.tuples(*[st.integers(0, 2**63)] * 11),
    st.none() | st.integers(-(10**13), 10**13),
    st.text(),
    st.booleans(),
    st.none() | st.integers(0, 10**6),
    st.floats(0, 1e9),
)
def test_every_answer_validates(
    name: str,
    counts: tuple[int, ...],
    oldest_ms: int | None,
    reason: str,
    shared: bool,  # noqa: FBT001  hypothesis fills it
    worker_concurrency: int | None,
    age: float,
) -> None:
    numbers = [field.name for field in fields(PoolDepth) if field.type is int or field.type == "int"]
    depth = replace(
        DEPTH,
        name=name,
        **dict(zip(numbers, counts, strict=False)),
        oldest_ms=oldest_ms,
        scalable=not reason,
        reason=reason,
        executor_ids_shared=shared,
        worker_concurrency=worker_concurrency,
    )
    body = depth_json(depth, observed_at_ms=OBSERVED_AT_MS, age_seconds=age)
    answer = published.strict_json(body.decode())
    Draft202012Validator(published.schema("queue-depth")).validate(answer)
    assert isinstance(answer, dict)
    assert answer["name"] == name


def test_a_real_queue_is_encoded_as_it_was_counted() -> None:
    table = read(enqueued(6), pending(2), limits=QueueLimits(worker_concurrency=4))
    depth = Snapshot(table).queue("q")
    assert depth is not None
    shown = payload(depth)
    assert (shown["queue_length"], shown["in_flight"], shown["wanted_replicas"]) == (6, 2, 2)
    assert shown["oldest_enqueued_seconds"] == 60


def test_no_not_a_number_can_get_out() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        payload(replace(DEPTH, queue_length=float("nan")))  # type: ignore[arg-type]


def test_a_page_holds_its_items_and_where_the_next_begins() -> None:
    assert json.loads(page_json("queues", [b'{"name":"a"}', b'{"name":"b"}'], 'q"ü')) == {
        "queues": [{"name": "a"}, {"name": "b"}],
        "next": 'q"ü',
    }
    assert json.loads(page_json("pools", [], "")) == {"pools": [], "next": ""}
