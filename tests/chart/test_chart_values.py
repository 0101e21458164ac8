"""The values, their schema and the chart's facts say the same."""

from __future__ import annotations

import copy
import functools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft7Validator

from harness.helm import CHART, one, render, template
from queue_depth import __version__
from queue_depth.settings.model import PoolSettings, QueueSettings, Settings, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = (CHART / "values.yaml").read_text()
VALUES: dict[str, Any] = yaml.safe_load(TEXT)
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
POOL = SCHEMA["properties"]["pools"]["additionalProperties"]["properties"]


def keys(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for key, field in schema.get("properties", {}).items():
        yield f"{path}{key}", field
        yield from keys(field, f"{path}{key}.")


def set_keys(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in values.items():
        yield f"{path}{key}"
        field = schema["properties"].get(key, {})
        if isinstance(value, dict) and "properties" in field:
            yield from set_keys(value, field, f"{path}{key}.")


def test_every_value_is_in_the_schema() -> None:
    assert set(set_keys(VALUES, SCHEMA)) <= {path for path, _ in keys(SCHEMA)}
    Draft7Validator.check_schema(SCHEMA)
    Draft7Validator(SCHEMA).validate(VALUES)


def test_everything_in_the_schema_has_a_value_or_an_example_of_a_pool() -> None:
    outside = {path for path, _ in keys(SCHEMA)} - set(set_keys(VALUES, SCHEMA))
    # `global` is Helm's, config is the exporter's, probes may be timed further, and behavior is the HPA's own.
    outside = {path for path in outside if not re.match(r"global|config\.|exporter\.\w+Probe\.|.*behavior\.", path)}
    pools = {path for path in outside if path.startswith("poolDefaults.")}
    assert outside == pools
    examples = set(re.findall(r"^# +(\w+):", TEXT, re.MULTILINE))
    assert {path.split(".")[1] for path in pools if "fallback" not in path} | (
        POOL.keys() - SCHEMA["properties"]["poolDefaults"]["properties"].keys()
    ) <= examples


def test_the_schema_is_closed_and_says_what_everything_is() -> None:
    free = {"resources", "affinity", "podSecurityContext", "securityContext", "global"}
    for path, field in [*keys(SCHEMA), *((f"pools.*.{key}", field) for key, field in POOL.items())]:
        shared = field.get("$ref", "").startswith("#/properties/poolDefaults") or path.startswith("pools.*.")
        assert field.get("description") or shared or "Probe." in path or path == "metrics", path
        if field.get("type") == "object":
            assert "additionalProperties" in field or path.rpartition(".")[2] in free, path


def test_the_exporters_settings_are_all_there() -> None:
    given = {"database_url", "database_url_file", "tokens_file", "listen", "pools"}
    assert SCHEMA["properties"]["config"]["properties"].keys() == settings_of(Settings).keys() - given
    assert POOL.keys() >= settings_of(PoolSettings).keys()
    assert SCHEMA["definitions"]["QueueSettings"]["properties"].keys() == settings_of(QueueSettings).keys()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"exporterr": {}}, "exporterr"),
        ({"pools": {"p": {"maxReplicas": 3}}}, "maxReplicas"),
        ({"pools": {"p": {"scaleIn": {"mode": "whenidle"}}}}, "value must be one of"),
        ({"pools": {"p": {"maxReplicaCount": "3"}}}, "got string, want integer"),
        ({"config": {"refresh": 3}}, "refresh"),
        ({"config": {"queues": {"q": {"worker_concurrency": 0}}}}, "worker_concurrency"),
        ({"image": {"tag": 1.1}}, "got number, want string"),
        ({"image": {"digest": "0123"}}, "digest"),
        ({"auth": {"tokens": ["two words"]}}, "tokens"),
        ({"poolDefaults": {"mode": None}}, "missing property 'mode'"),
        ({"exporter": None}, "missing property 'exporter'"),
        ({"exporter": {"replicas": None}}, "missing property 'replicas'"),
        ({"fullnameOverride": "Depth_1"}, "fullnameOverride"),
        ({"pools": {"p": {"behavior": {"scaleUp": {"policies": []}}}}}, "minItems"),
        ({"pools": {"p": {"behavior": {"scaleUp": {"tolerance": "5%"}}}}}, "tolerance"),
    ],
)
def test_a_value_that_is_no_value_is_refused(values: dict[str, Any], words: str) -> None:
    done = template(values)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    assert words in done.stderr


def removed(values: dict[str, Any], path: str) -> dict[str, Any]:
    """The values as Helm hands them on where the user wrote null."""
    left = copy.deepcopy(values)
    *parents, last = path.split(".")
    inner = left
    for key in parents:
        inner = inner[key]
    del inner[last]
    return left


def test_a_null_takes_away_only_what_is_empty_or_kubernetes_own() -> None:
    takes = {path for path in set_keys(VALUES, SCHEMA) if Draft7Validator(SCHEMA).is_valid(removed(VALUES, path))}
    paths = {path: functools.reduce(dict.__getitem__, path.split("."), VALUES) for path in takes}
    kept = {path for path, default in paths.items() if default not in ("", [], {})}
    assert kept == {
        "exporter.resources",
        "exporter.podSecurityContext",
        "exporter.securityContext",
        "networkPolicy.keda.podLabels",
        "contractCheck.resources",
    }
    nulls: dict[str, Any] = {}
    for path in takes:
        *parents, last = path.split(".")
        inner = nulls
        for key in parents:
            inner = inner.setdefault(key, {})
        inner[last] = None
    written = {
        "image": {"repository": "registry.example/queue-depth"},
        "database": {"urlFile": "/url"},
        "metrics": {"podMonitor": {"enabled": True}},
        "pools": {"p": {"target": {"name": "worker"}, "maxReplicaCount": 1}},
    }
    plain: dict[str, Any] = {"exporter": {"resources": None, "podSecurityContext": None, "securityContext": None}}
    plain |= {"networkPolicy": {"keda": {"podLabels": None}}, "contractCheck": {"resources": None}}
    assert render(laid_over(nulls, written)) == render(laid_over(plain, written))
    (container,) = one(render(laid_over(plain, written)), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert not {"resources", "securityContext"} & container.keys()


def laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = below.keys() & above.keys()
    nested = {key for key in both if isinstance(below[key], dict) and isinstance(above[key], dict)}
    return below | above | {key: laid_over(below[key], above[key]) for key in nested}


def test_the_chart_is_of_the_packages_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    assert chart["kubeVersion"] == ">=1.27.0-0"
    changes = yaml.safe_load(chart["annotations"]["artifacthub.io/changes"])
    assert all(change.keys() == {"kind", "description"} for change in changes)
