"""The published files agree with each other, and a change that would hurt a reader is seen."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource

from queue_depth.contract import gjson, openapi, published
from queue_depth.contract.published import SCHEMA_NAMES, Counterexample, Example, SchemaName

REGISTRY: Registry[Any] = Registry().with_resources(
    (published.schema(name)["$id"], Resource.from_contents(published.schema(name))) for name in SCHEMA_NAMES
)

# The wire contract: (type, unit) of every field of version 1. A line may be added here, never changed or taken out:
# KEDA reads an absent path as an error, so every ScaledObject that names the field, in whatever repository, freezes.
WIRE = {
    "name": ("string", "none"),
    "queue_length": ("integer", "workflows"),
    "in_flight": ("integer", "workflows"),
    "runnable": ("integer", "workflows"),
    "busy_workers": ("integer", "executors"),
    "floor_replicas": ("integer", "replicas"),
    "wanted_replicas": ("integer", "replicas"),
    "stranded": ("integer", "workflows"),
    "oldest_enqueued_seconds": ("integer", "seconds"),
    "other_in_flight": ("integer", "workflows"),
    "delayed": ("integer", "workflows"),
    "delayed_due": ("integer", "workflows"),
    "scalable": ("boolean", "none"),
    "reason": ("string", "none"),
    "executor_ids_shared": ("boolean", "none"),
    "observed_at": ("integer", "unix seconds"),
    "age_seconds": ("integer", "seconds"),
    "worker_concurrency": ("integer", "workflows per executor"),
}
OPTIONAL = {"worker_concurrency"}
BREAKS = (
    "every ScaledObject that names this field freezes, in repositories that nobody here sees:"
    " KEDA reads an absent path as an error"
)


def validator(name: SchemaName) -> Draft202012Validator:
    return Draft202012Validator(published.schema(name), registry=REGISTRY)


VALID = [(name, example) for name in SCHEMA_NAMES for example in published.examples(name)]
INVALID = [(name, example) for name in SCHEMA_NAMES for example in published.counterexamples(name)]


def identity(value: object) -> str:
    return value.name if isinstance(value, Example | Counterexample) else str(value)


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_a_schema_is_valid_and_lets_fields_be_added(name: SchemaName) -> None:
    Draft202012Validator.check_schema(published.schema(name))
    assert published.schema(name)["additionalProperties"] is True


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_every_field_has_a_description_that_says_its_unit(name: SchemaName) -> None:
    for told in published.schema(name)["properties"].values():
        assert f"Unit: {told['x-unit']}" in told["description"]


@pytest.mark.parametrize("field", WIRE)
def test_a_field_of_version_1_is_neither_renamed_nor_changed(field: str) -> None:
    flat = published.schema("queue-depth")
    assert field in flat["properties"], f"{field} is gone: {BREAKS}"
    told = flat["properties"][field]
    assert (told["type"], told["x-unit"]) == WIRE[field], f"{field} means something else now: a v2, not a change"
    assert (field in flat["required"]) == (field not in OPTIONAL), f"{field} may now be absent: {BREAKS}"


@pytest.mark.parametrize("field", sorted(set(WIRE) - OPTIONAL))
def test_an_answer_without_a_field_is_refused(field: str) -> None:
    for example in published.examples("queue-depth"):
        answer = json.loads(example.text)
        del answer[field]
        with pytest.raises(ValidationError, match=f"'{field}' is a required property"):
            validator("queue-depth").validate(answer)


def test_an_answer_with_a_new_field_passes() -> None:
    for example in published.examples("queue-depth"):
        validator("queue-depth").validate(json.loads(example.text) | {"packed_replicas": 1})


@pytest.mark.parametrize(("name", "example"), VALID, ids=identity)
def test_a_valid_example_validates(name: SchemaName, example: Example) -> None:
    validator(name).validate(published.strict_json(example.text))


@pytest.mark.parametrize(("name", "example"), INVALID, ids=identity)
def test_an_invalid_example_fails_for_its_stated_reason(name: SchemaName, example: Counterexample) -> None:
    assert example.why
    assert example.breaks
    if example.keyword == "json":
        with pytest.raises(ValueError, match=r"."):
            published.strict_json(example.text)
        return
    errors = list(validator(name).iter_errors(published.strict_json(example.text)))
    assert {(error.validator, error.json_path) for error in errors} >= {(example.keyword, example.path)}
    assert len({error.json_path for error in errors}) == 1


def numbers(answer: Mapping[str, Any]) -> Mapping[str, int]:
    return {key: value for key, value in answer.items() if type(value) is int}


@pytest.mark.parametrize("example", published.examples("queue-depth"), ids=identity)
def test_an_example_tells_a_situation_that_the_rules_allow(example: Example) -> None:
    answer = json.loads(example.text)
    assert answer["wanted_replicas"] == 0 or answer["wanted_replicas"] >= answer["floor_replicas"]
    assert (answer["wanted_replicas"] == 0) == (answer["runnable"] == 0)
    assert answer["floor_replicas"] >= answer["busy_workers"]
    assert answer["stranded"] <= answer["queue_length"] + answer["delayed_due"]
    assert answer["runnable"] + answer["stranded"] <= answer["queue_length"] + answer["delayed_due"]
    assert answer["age_seconds"] <= 30


@pytest.mark.parametrize("example", published.examples("queue-depth"), ids=identity)
def test_keda_reads_every_number_of_an_example(example: Example) -> None:
    for field, value in numbers(json.loads(example.text)).items():
        assert gjson.read(example.text, field) == value


def test_the_openapi_document_is_up_to_date() -> None:
    assert published.text("openapi.json") == openapi.rendered(), (
        "run python -m queue_depth.contract.openapi > contract/openapi.json"
    )


def test_the_openapi_document_is_valid_and_has_every_route() -> None:
    document = openapi.document()
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    assert set(document["paths"]) == {
        "/dbos-queue-depth/{queue}",
        "/v1/queues",
        "/v1/queues/{queue}",
        "/v1/pools",
        "/v1/pools/{pool}",
        "/metrics",
        "/livez",
        "/readyz",
        "/healthz",
    }


def test_every_json_example_is_one_of_the_known_folders() -> None:
    root = Path(__file__).parents[2] / "contract" / "examples"
    assert {path.name for folder in root.iterdir() for path in folder.iterdir()} == set(SCHEMA_NAMES)
