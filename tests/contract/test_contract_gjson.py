"""gjson.rs as it is used here against the Go gjson that KEDA links: see gjson_reference/ for the program."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from queue_depth.contract import gjson

HERE = Path(__file__).parent
REFERENCE: list[dict[str, Any]] = json.loads((HERE / "gjson_reference.json").read_text(encoding="utf-8"))

# The forms that the documentation shows: of these, no answer may be evaded.
DECIDED = {
    "queue_length",
    "in_flight",
    "absent",
    "none",
    "scalable",
    "queues.#",
    "queues.0.queue_length",
    "queues.#.queue_length",
    'queues.#(name=="emails").queue_length',
    'queues.#(name=="my.queue").queue_length',
    'queues.#(name=="grüße 日本").queue_length',
    'queues.#(name=="absent").queue_length',
    "my\\.queue.queue_length",
}


def test_a_decided_reading_is_the_one_of_keda() -> None:
    decided = 0
    for case in REFERENCE:
        found = gjson.read(case["body"], case["path"])
        about = f"{case['path']!r} in {case['body']!r}"
        if isinstance(found, gjson.Undecided):
            continue
        decided += 1
        if isinstance(found, gjson.NotANumber):
            assert case["error"], about
        else:
            assert math.isclose(case["number"], found, rel_tol=1e-12, abs_tol=1e-9), about
    assert decided > len(REFERENCE) / 2


def test_the_documented_forms_are_decided() -> None:
    seen = set()
    for case in REFERENCE:
        if case["path"] in DECIDED and case["body"].startswith(('{"name"', '{"queues"', '{"my.queue"')):
            seen.add(case["path"])
            assert not isinstance(gjson.read(case["body"], case["path"]), gjson.Undecided), case["path"]
    assert seen == DECIDED


@pytest.mark.parametrize("case", [case for case in REFERENCE if case.get("special")], ids=lambda case: case["body"])
def test_what_keda_turns_into_zero_is_never_a_number_here(case: dict[str, Any]) -> None:
    assert isinstance(gjson.read(case["body"], case["path"]), gjson.Undecided)


def test_the_reference_was_made_from_the_cases_that_stand_beside_it() -> None:
    cases = json.loads((HERE / "gjson_reference" / "cases.json").read_text(encoding="utf-8"))
    assert [(group["body"], path) for group in cases for path in group["paths"]] == [
        (case["body"], case["path"]) for case in REFERENCE
    ], "run go run . > ../gjson_reference.json in gjson_reference/"
