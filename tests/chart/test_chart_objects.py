"""What the chart renders: for every situation in `ci/`, and value by value."""

from __future__ import annotations

import copy
import json
import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
import pytest
import yaml
from jsonschema import Draft7Validator

from harness.helm import CHART, CI_FILES, KUBERNETES, Manifest, helm, of_kind, one, render, template
from harness.program import run
from harness.prometheus_operator import definitions
from queue_depth import cli
from queue_depth.settings.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = Path(__file__).parent / "schemas"
EXAMPLE = CHART.parent / "examples/worker"

OWN = "image: {repository: registry.example/queue-depth}\ndatabase: {existingSecret: {name: db}}\n"

of_ci = cache(render)
every_ci_file = pytest.mark.parametrize("path", CI_FILES, ids=lambda path: path.stem.removesuffix("-values"))


def values(text: str = "") -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(OWN + text)
    return found


def pool(text: str = "{}") -> dict[str, Any]:
    written = {"target": {"name": "worker"}, "maxReplicaCount": 10} | yaml.safe_load(text)
    return values() | {"pools": {"emails": written}}


def scaled(text: str = "{}", **where: Any) -> Manifest:  # noqa: ANN401 - render's
    return one(render(pool(text), **where), "ScaledObject")


def hpa(text: str = "{}", **where: Any) -> dict[str, Any]:  # noqa: ANN401 - render's
    behavior: dict[str, Any] = scaled(text, **where)["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    return behavior


def pod_of(manifest: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]
    return spec if manifest["kind"] == "Pod" else spec["template"]["spec"]


def keda(kind: str) -> Draft7Validator:
    return definition(SCHEMAS / f"keda.sh_{kind.lower()}s.yaml")


def prometheus_operator(kind: str) -> Draft7Validator:
    return definition(definitions()[kind])


def notes(values: Path, folder: Path, kubernetes: str) -> str:
    """What Helm tells after an install. It renders notes only against a cluster, so here they are an object."""
    chart = Path(shutil.copytree(CHART, folder / "chart"))
    told = (chart / "templates/NOTES.txt").rename(chart / "templates/_notes.tpl")
    told.write_text('{{ define "notes" }}' + told.read_text() + "{{ end }}")
    (chart / "templates/notes.yaml").write_text(
        '{kind: Notes, metadata: {name: n}, text: {{ include "notes" . | quote }}}'
    )
    text: str = one(render(values, chart=chart, kubernetes=kubernetes), "Notes")["text"]
    return text


@cache
def definition(path: Path) -> Draft7Validator:
    (version,) = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    for part in _parts(schema):
        # The API server drops what it does not know; here that is a mistake.
        if "properties" in part and part is not schema["properties"]["metadata"]:
            part.setdefault("additionalProperties", False)
        if part.pop("x-kubernetes-int-or-string", False):
            part.pop("anyOf", None)
            part["type"] = ["integer", "string"]
    return Draft7Validator(schema)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _parts(inner)


@every_ci_file
def test_every_object_is_one_that_its_api_takes(path: Path) -> None:
    manifests = of_ci(path)
    names = [(m["kind"], m["metadata"].get("namespace", "ns"), m["metadata"]["name"]) for m in manifests]
    assert len(names) == len(set(names))
    for manifest in manifests:
        assert len(manifest["metadata"]["name"]) <= 63
        validate(manifest)


def validate(manifest: Manifest) -> None:
    group = manifest["apiVersion"].rpartition("/")[0]
    if group == "keda.sh":
        keda(manifest["kind"]).validate(manifest)
    elif group == "monitoring.coreos.com":
        prometheus_operator(manifest["kind"]).validate(manifest)
    else:
        for version in ("1.27", KUBERNETES.rpartition(".")[0]):
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("text", ["123", "1e3", "0x1f"])
def test_names_that_yaml_reads_as_numbers_stay_names(text: str) -> None:
    monitor = {"enabled": True, "labels": {"release": text}}
    written = pool(f"{{name: '{text}', target: {{name: '{text}'}}, tokenSecret: {{name: '{text}'}}}}") | {
        "fullnameOverride": "depth",
        "nameOverride": text,
        "serviceAccount": {"name": text},
        "exporter": {"priorityClassName": text},
        "database": {"existingSecret": {"name": text, "key": text}},
        "auth": {"tokens": [text], "clientSecret": {"key": text}},
        "metrics": {"serviceMonitor": monitor},
    }
    for kind in ("helm", "argocd", "job"):
        checked = written | {"contractCheck": {"as": kind}}
        for manifest in render(checked, "--namespace", text, release=text):
            assert manifest["metadata"]["namespace"] == text
            assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == text
            if manifest["apiVersion"] != "keda.sh/v1alpha1":  # KEDA's schema leaves metadata open
                validate(manifest)
            if manifest["kind"] == "Secret":
                assert all(isinstance(key, str) for key in manifest["stringData"])


def test_keys_that_yaml_reads_as_true_stay_keys() -> None:
    written = pool() | {"auth": {"tokens": ["t"], "clientSecret": {"key": "on"}}}
    assert one(render(written), "Secret", "r-queue-depth-token")["stringData"] == {"on": "t"}


def test_a_misspelt_field_of_keda_would_be_noticed() -> None:
    manifest = copy.deepcopy(one(of_ci(CHART / "ci/default-values.yaml"), "ScaledObject"))
    manifest["spec"]["cooldownPeriods"] = 3
    assert not keda("ScaledObject").is_valid(manifest)


def test_a_misspelt_field_of_the_prometheus_operator_would_be_noticed() -> None:
    manifest = copy.deepcopy(one(of_ci(CHART / "ci/many-pools-values.yaml"), "ServiceMonitor"))
    manifest["spec"]["endpoints"][0]["autorization"] = manifest["spec"]["endpoints"][0].pop("authorization")
    assert not prometheus_operator("ServiceMonitor").is_valid(manifest)


@every_ci_file
def test_helm_finds_nothing_to_complain_of(path: Path) -> None:
    run([helm(), "lint", "--strict", CHART, "--values", path, "--kube-version", KUBERNETES])


@every_ci_file
def test_every_trigger_keeps_the_contract(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = of_kind(of_ci(path), "ScaledObject")
    if not objects:
        assert path.name == "exporter-only-values.yaml"
        return
    file = tmp_path / "rendered.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    assert cli.main(["contract", "verify", str(file)]) == 0, capsys.readouterr().out
    assert f"{2 * len(objects)} triggers checked" in capsys.readouterr().out


@every_ci_file
def test_the_exporter_can_load_its_configuration_and_knows_every_pool_that_is_scaled(
    path: Path, tmp_path: Path
) -> None:
    manifests = of_ci(path)
    files = [m for m in of_kind(manifests, "ConfigMap") if "config.yaml" in m.get("data", {})]
    written = yaml.safe_load(path.read_text())
    if not written.get("exporter", {}).get("enabled", True):
        assert not files
        return
    (file,) = files
    (tmp_path / "config.yaml").write_text(file["data"]["config.yaml"])
    settings = load({}, {"PGHOST": "db"}, config=str(tmp_path / "config.yaml"))
    assert settings.pools.keys() == written["pools"].keys()
    asked = {
        unquote(urlsplit(trigger["metadata"]["url"]).path.removeprefix("/v1/pools/"))
        for scaled_object in of_kind(manifests, "ScaledObject")
        for trigger in scaled_object["spec"]["triggers"]
        if trigger["type"] == "metrics-api"
    }
    assert asked == {name for name, pool in written["pools"].items() if pool.get("scaled", True)}
    for name, setting in written.get("config", {}).items():
        if name != "queues":
            assert getattr(settings, {"schema": "dbos_schema"}.get(name, name)) == setting


def test_large_numbers_and_names_that_yaml_reads_otherwise_arrive_as_they_were_written(tmp_path: Path) -> None:
    manifests = of_ci(CHART / "ci/many-pools-values.yaml")
    (tmp_path / "config.yaml").write_text(one(manifests, "ConfigMap", "r-queue-depth")["data"]["config.yaml"])
    settings = load({}, {"PGHOST": "db"}, config=str(tmp_path / "config.yaml"))
    assert settings.in_flight_window_seconds == 2_592_000
    assert settings.queues["reports"].concurrency == 1_000_000
    assert settings.queues["on"].partition_concurrency == 1


@every_ci_file
def test_secrets_are_in_secrets_only(path: Path) -> None:
    for manifest in of_ci(path):
        if manifest["kind"] != "Secret":
            text = json.dumps(manifest)
            assert not [secret for secret in ("not-a-secret", "first-token", "second-token") if secret in text]


@every_ci_file
def test_every_pod_is_confined(path: Path) -> None:
    for manifest in of_ci(path):
        if manifest["kind"] not in ("Deployment", "Job", "Pod"):
            continue
        pod = pod_of(manifest)
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"} in container["env"]
        assert container["resources"]["limits"].keys() == {"memory"}


def test_a_pool_scales_on_two_numbers_of_one_snapshot() -> None:
    found = scaled("namespace: shop")
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("emails", "shop")
    spec = found["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"}
    url = "http://r-queue-depth.ns.svc:8080/v1/pools/emails"
    assert spec["triggers"] == [
        {
            "type": "metrics-api",
            "name": name,
            "metricType": "AverageValue",
            "metadata": {"url": url, "valueLocation": field, "targetValue": "1", "activationTargetValue": "0"},
        }
        for name, field in (("backlog", "wanted_replicas"), ("in-flight", "floor_replicas"))
    ]
    assert [spec[key] for key in ("minReplicaCount", "maxReplicaCount")] == [0, 10]
    assert [spec[key] for key in ("pollingInterval", "cooldownPeriod", "initialCooldownPeriod")] == [5, 300, 300]
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 1, "behavior": "currentReplicasIfHigher"}
    assert "idleReplicaCount" not in spec


def test_raw_scales_on_rows_with_the_workers_concurrency() -> None:
    triggers = scaled("{mode: raw, workerConcurrency: 4}")["spec"]["triggers"]
    told = [(trigger["metadata"]["valueLocation"], trigger["metadata"]["targetValue"]) for trigger in triggers]
    assert told == [("queue_length", "4"), ("in_flight", "4")]


def test_raw_can_ask_for_a_queue_where_the_exporter_knows_no_pools() -> None:
    first, second = of_kind(of_ci(CHART / "ci/raw-values.yaml"), "ScaledObject")
    urls = [found["spec"]["triggers"][0]["metadata"]["url"] for found in (first, second)]
    base = "http://queue-depth.queue-depth.svc:8080"
    assert urls == [f"{base}/dbos-queue-depth/emails%2Fhigh%20priority", f"{base}/v1/pools/reports"]
    assert second["spec"]["fallback"]["failureThreshold"] == 5
    assert second["spec"]["fallback"]["behavior"] == "currentReplicasIfHigher"


@pytest.mark.parametrize("name", ["my.queue", "a/b c", "ü+%", "50%", "a?b#c&d=e", "~-_.!*'()"])
def test_any_pools_name_is_one_segment_of_the_url(name: str) -> None:
    written = values() | {"pools": {name: {"name": "x", "target": {"name": "w"}, "maxReplicaCount": 1}}}
    url = one(render(written), "ScaledObject")["spec"]["triggers"][0]["metadata"]["url"]
    parts = urlsplit(url)
    assert unquote(parts.path.removeprefix("/v1/pools/")) == name
    assert parts.path.count("/") == 3
    assert not parts.query + parts.fragment


def test_the_steps_from_and_to_zero_are_left_out_where_there_are_none() -> None:
    spec = scaled("minReplicaCount: 2")["spec"]
    assert spec["fallback"]["replicas"] == 2
    assert not {"pollingInterval", "cooldownPeriod", "initialCooldownPeriod"} & spec.keys()
    spec = scaled("{minReplicaCount: 2, idleReplicaCount: 0, cooldownPeriod: 60}")["spec"]
    assert [spec[key] for key in ("idleReplicaCount", "cooldownPeriod", "initialCooldownPeriod")] == [0, 60, 60]


@pytest.mark.parametrize(
    ("kubernetes", "told", "tolerance"),
    [
        ("1.35.0", "auto", "0"),
        ("v1.35.2-gke.1", "auto", "0"),
        ("1.34.9", "auto", None),
        ("1.33.0", "always", "0"),
        ("1.36.0", "never", None),
    ],
)
def test_the_hpa_ignores_no_difference_where_the_cluster_can(kubernetes: str, told: str, tolerance: str | None) -> None:
    up = hpa(f"scaleUpTolerance: {told}", kubernetes=kubernetes)["scaleUp"]
    assert up.get("tolerance") == tolerance


@pytest.mark.parametrize(
    ("kubernetes", "told", "expected"),
    [
        ("1.34.1", "{}", 0.1),
        ("1.34.1", "scaleUpTolerance: always", None),
        ("1.34.1", "scaled: false", None),
        ("1.34.1", "hpa_tolerance: 0.2", 0.2),
        ("1.34.1", "behavior: {scaleUp: {tolerance: '0.05'}}", 0.05),
        ("1.34.1", "behavior: {scaleUp: {tolerance: 50m}}", 0.05),
        ("1.36.0", "behavior: {scaleUp: {tolerance: 0.05}}", 0.05),
        ("1.34.1", "behavior: {scaleUp: {tolerance: '0'}}", None),
        ("1.35.0", "{}", None),
        ("1.35.0", "scaleUpTolerance: never", 0.1),
    ],
)
def test_where_the_hpa_ignores_differences_the_exporter_asks_for_more(
    kubernetes: str, told: str, expected: float | None
) -> None:
    rendered = render(pool(told), kubernetes=kubernetes)
    text = one(rendered, "ConfigMap", "r-queue-depth")["data"]["config.yaml"]
    assert yaml.safe_load(text)["pools"]["emails"].get("hpa_tolerance") == expected


@pytest.mark.parametrize(("kubernetes", "told"), [("1.34.0", True), ("1.35.0", False)])
def test_a_cluster_whose_hpa_ignores_small_differences_is_told_of(tmp_path: Path, kubernetes: str, told: bool) -> None:  # noqa: FBT001 - a parameter
    text = notes(CHART / "ci/default-values.yaml", tmp_path, kubernetes)
    assert ("ignores small differences" in text) is told
    assert ("emails (0.1)" in text) is told
    assert "ns/emails-worker: 0 to 20 pods" in text
    assert "kubectl -n ns get scaledobjects,hpa" in text


def test_notes_say_what_holds_for_this_release_and_nothing_else(tmp_path: Path) -> None:
    assert "small differences" not in notes(CHART / "ci/raw-values.yaml", tmp_path, "1.34.0")
    text = notes(CHART / "ci/many-pools-values.yaml", tmp_path / "other", "1.34.0")
    assert "small differences" not in text
    assert 'media/video: 0 to 50 pods on pool "video", paused' in text
    text = notes(CHART / "ci/scaling-only-values.yaml", tmp_path / "elsewhere", "1.34.0")
    assert "Set the same hpa_tolerance for them in the exporter's release." in text
    assert "one sync" not in text
    text = notes(CHART / "ci/trial-values.yaml", tmp_path / "trial", "1.34.0")
    assert "no longer than one sync of the HPA (15 s)" in text
    assert "and it may be a busy one: emails" in text
    text = notes(CHART / "ci/exporter-only-values.yaml", tmp_path / "alone", "1.34.0")
    assert "port 5432 of the database and lets in KEDA from the namespace keda, Prometheus from monitoring." in text


def test_notes_tell_of_every_pool_that_is_held(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    held = {"annotations": {"autoscaling.keda.sh/paused-scale-out": "true"}, "scaleIn": {"mode": "frozen"}}
    file.write_text(json.dumps(pool(json.dumps(held))))
    text = notes(file, tmp_path, KUBERNETES)
    assert 'ns/worker: 0 to 10 pods on pool "emails", none taken away, none added\n' in text


def test_pods_are_gone_to_at_once_and_left_after_the_window() -> None:
    assert hpa("scaleIn: {stabilizationWindowSeconds: 60}") == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 10, "periodSeconds": 15}],
            "tolerance": "0",
        },
        "scaleDown": {"stabilizationWindowSeconds": 60},
    }


def test_scale_in_when_idle_leaves_the_step_to_zero_to_keda() -> None:
    assert hpa("scaleIn: {mode: whenIdle}")["scaleDown"] == {
        "stabilizationWindowSeconds": 300,
        "selectPolicy": "Disabled",
    }


def test_frozen_scale_in_is_kedas_own_pause() -> None:
    assert scaled("scaleIn: {mode: frozen}")["metadata"]["annotations"]["autoscaling.keda.sh/paused-scale-in"] == "true"


def test_behavior_is_laid_over_the_charts() -> None:
    found = hpa("behavior: {scaleUp: {stabilizationWindowSeconds: 30}, scaleDown: {tolerance: 0.2}}")
    assert found["scaleUp"]["stabilizationWindowSeconds"] == 30
    assert found["scaleUp"]["tolerance"] == "0"
    assert found["scaleDown"] == {"stabilizationWindowSeconds": 300, "tolerance": "0.2"}
    keda("ScaledObject").validate(scaled("behavior: {scaleUp: {tolerance: 0.05}, scaleDown: {tolerance: 0}}"))


def test_a_pause_is_an_annotation_in_quotes() -> None:
    annotations = scaled("{paused: true, pausedReplicaCount: 0}")["metadata"]["annotations"]
    assert annotations["autoscaling.keda.sh/paused"] == "true"
    assert annotations["autoscaling.keda.sh/paused-replicas"] == "0"
    assert not [key for key in scaled()["metadata"]["annotations"] if "paused" in key]


def test_labels_that_argo_cd_tracks_by_stay_off_the_hpa() -> None:
    key = "scaledobject.keda.sh/hpa-excluded-labels"
    told = "app.kubernetes.io/instance,argocd.argoproj.io/instance"
    assert scaled()["metadata"]["annotations"][key] == told
    assert "annotations" not in scaled("hpaExcludedLabels: []")["metadata"]


def test_defaults_hold_for_every_pool_that_does_not_say_otherwise_and_zero_and_false_are_said() -> None:
    written = pool("{minReplicaCount: 0, paused: false}")
    defaults = {"minReplicaCount": 2, "paused": True, "cooldownPeriod": 17, "scaleIn": {"mode": "frozen"}}
    written["poolDefaults"] = defaults
    found = one(render(written), "ScaledObject")
    assert found["spec"]["minReplicaCount"] == 0
    assert found["spec"]["cooldownPeriod"] == 17
    assert found["metadata"]["annotations"].keys() >= {"autoscaling.keda.sh/paused-scale-in"}
    assert "autoscaling.keda.sh/paused" not in found["metadata"]["annotations"]


def test_a_pool_that_others_scale_is_known_and_not_scaled() -> None:
    manifests = render(pool("scaled: false"))
    assert not of_kind(manifests, "ScaledObject") + of_kind(manifests, "Job") + of_kind(manifests, "Pod")
    assert "emails" in yaml.safe_load(one(manifests, "ConfigMap")["data"]["config.yaml"])["pools"]


def test_keda_is_given_the_token_of_the_pools_namespace() -> None:
    manifests = of_ci(CHART / "ci/many-pools-values.yaml")
    found = {
        m["metadata"]["name"]: (m["metadata"]["namespace"], m["spec"]["secretTargetRef"])
        for m in of_kind(manifests, "TriggerAuthentication")
    }
    assert found["emails"] == ("shop", [{"parameter": "token", "name": "shop-token", "key": "token"}])
    assert found["video"] == ("media", [{"parameter": "token", "name": "queue-depth-client", "key": "token"}])
    assert "reports" not in found
    for manifest in of_kind(manifests, "ScaledObject"):
        name = manifest["metadata"]["name"]
        for trigger in manifest["spec"]["triggers"][:2]:
            assert trigger["metadata"]["authMode"] == "bearer"
            assert trigger["authenticationRef"] == (
                {"kind": "ClusterTriggerAuthentication", "name": "queue-depth"} if name == "reports" else {"name": name}
            )


def test_tokens_among_the_values_become_secrets_where_each_is_read() -> None:
    manifests = of_ci(CHART / "ci/trial-values.yaml")
    assert one(manifests, "Secret", "depth")["stringData"] == {
        "database-url": "postgresql://queue_depth:not-a-secret@db.example:5432/app_dbos_sys",
        "tokens": "first-token\nsecond-token",
    }
    clients = of_kind(manifests, "Secret", "depth-token")
    assert {secret["metadata"]["namespace"] for secret in clients} == {"ns", "shop"}
    assert all(secret["stringData"] == {"token": "first-token"} for secret in clients)


def test_secrets_are_mounted_as_folders_so_that_they_can_change() -> None:
    deployment = one(of_ci(CHART / "ci/many-pools-values.yaml"), "Deployment")
    (container,) = pod_of(deployment)["containers"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert environment["QUEUE_DEPTH_DATABASE_URL_FILE"] == "/etc/queue-depth/database/database-url"
    assert environment["QUEUE_DEPTH_TOKENS_FILE"] == "/etc/queue-depth/auth/tokens"
    assert environment["QUEUE_DEPTH_CONFIG"] == "/etc/queue-depth/config/config.yaml"
    volumes = {volume["name"]: volume for volume in pod_of(deployment)["volumes"]}
    assert volumes["auth"]["secret"]["items"] == [{"key": "accepted", "path": "tokens"}]
    assert not [mount for mount in container["volumeMounts"] if "subPath" in mount]
    assert not [entry for entry in container["env"] if "valueFrom" in entry]


def test_files_that_others_mount_are_named_to_the_exporter() -> None:
    (container,) = pod_of(one(of_ci(CHART / "ci/argocd-values.yaml"), "Deployment"))["containers"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert environment["QUEUE_DEPTH_DATABASE_URL_FILE"] == "/mnt/secrets/database-url"
    assert environment["QUEUE_DEPTH_TOKENS_FILE"] == "/mnt/secrets/tokens"
    assert environment["QUEUE_DEPTH_LISTEN"] == "[::]:8080"
    assert environment["PGSSLROOTCERT"] == "/etc/ssl/database/ca.crt"


def test_what_the_exporter_reads_once_starts_new_pods_and_what_it_reads_again_does_not() -> None:
    def checksum(text: str) -> str:
        deployment = one(render(values() | yaml.safe_load(text)), "Deployment")
        return json.dumps(deployment["spec"]["template"], sort_keys=True)

    plain = checksum("database: {url: 'postgresql://a@h/d', existingSecret: {name: ''}}")
    assert checksum("database: {url: 'postgresql://b@h/d', existingSecret: {name: ''}}") == plain
    assert checksum("config: {refresh_seconds: 2}") != checksum("{}")
    assert checksum("pools: {p: {scaled: false}}") != checksum("{}")


def test_upgrades_keep_answering() -> None:
    manifests = of_ci(CHART / "ci/default-values.yaml")
    deployment = one(manifests, "Deployment")
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    (container,) = pod_of(deployment)["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert container["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for selector in (
        one(manifests, "Service")["spec"]["selector"],
        deployment["spec"]["selector"]["matchLabels"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    keys = [spread["topologyKey"] for spread in pod_of(deployment)["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]


def test_a_budget_does_not_hold_up_a_drain_for_a_single_pod() -> None:
    assert not of_kind(of_ci(CHART / "ci/trial-values.yaml"), "PodDisruptionBudget")


def test_users_labels_never_change_what_is_selected() -> None:
    written = values(
        "labels: {app.kubernetes.io/name: x, a: b}\nexporter: {podLabels: {app.kubernetes.io/instance: x}}"
    )
    deployment = one(render(written), "Deployment")
    selector = deployment["spec"]["selector"]["matchLabels"]
    assert "x" not in selector.values()
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert deployment["metadata"]["labels"]["a"] == "b"


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("{repository: a.example/q}", "a.example/q:0.1.0"),
        ("{repository: 'a.example:5000/q', tag: '1.2'}", "a.example:5000/q:1.2"),
        (f"{{repository: a.example/q, digest: 'sha256:{'0' * 64}'}}", f"a.example/q@sha256:{'0' * 64}"),
    ],
)
def test_the_image_is_the_one_that_was_said(text: str, image: str) -> None:
    deployment = one(render(values() | {"image": yaml.safe_load(text)}), "Deployment")
    assert pod_of(deployment)["containers"][0]["image"] == image


def test_traffic_is_limited_to_keda_prometheus_the_checks_dns_and_the_database() -> None:
    spec = one(of_ci(CHART / "ci/many-pools-values.yaml"), "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    keda_rule, prometheus, checks = spec["ingress"]
    assert keda_rule["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "keda"}
    assert keda_rule["from"][0]["podSelector"]["matchLabels"] == {"app": "keda-operator"}
    assert "podSelector" not in prometheus["from"][0]
    job = one(of_ci(CHART / "ci/many-pools-values.yaml"), "Job")
    selected = checks["from"][0]["podSelector"]["matchLabels"]
    assert selected.items() <= job["spec"]["template"]["metadata"]["labels"].items()
    dns, database = spec["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert database == {"ports": [{"port": 6432, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}]}
    assert not of_kind(of_ci(CHART / "ci/trial-values.yaml"), "NetworkPolicy")


def test_every_rule_of_the_network_policy_is_explained() -> None:
    lines = template(CHART / "ci/exporter-only-values.yaml", "--show-only", "templates/networkpolicy.yaml").stdout
    rules = lines.split("  ingress:")[1].splitlines()
    begins = [number for number, line in enumerate(rules) if line.startswith("    - ")]
    assert len(begins) == 6
    assert all(rules[number - 1].lstrip().startswith("# ") for number in begins)


@pytest.mark.parametrize(
    ("kind", "endpoints"), [("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")]
)
def test_prometheus_scrapes_with_the_token(kind: str, endpoints: str) -> None:
    text = (
        f"metrics: {{{kind[0].lower() + kind[1:]}: {{enabled: true, labels: {{release: p}}}}}}\nauth: {{tokens: [t]}}"
    )
    manifests = render(values(text))
    monitor = one(manifests, kind)
    (endpoint,) = monitor["spec"][endpoints]
    assert endpoint["authorization"]["credentials"] == {"name": "r-queue-depth-token", "key": "token"}
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= one(manifests, "Service")["metadata"]["labels"].items()


def test_the_running_exporter_is_asked_before_an_upgrade_and_a_new_pool_is_no_failure() -> None:
    manifests = of_ci(CHART / "ci/default-values.yaml")
    job = one(manifests, "Job")
    assert job["metadata"]["annotations"] == {
        "helm.sh/hook": "pre-upgrade",
        "helm.sh/hook-weight": "0",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        "helm.sh/hook-output-log-policy": "hook-failed",
    }
    assert "--allow-unknown" in pod_of(job)["containers"][0]["args"]
    mounted = one(manifests, "ConfigMap", pod_of(job)["volumes"][0]["configMap"]["name"])
    assert mounted["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert int(mounted["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
    assert "serviceAccountName" not in pod_of(job)


def test_an_exporter_elsewhere_is_asked_before_the_first_install_too_and_must_know_the_pool() -> None:
    job = one(of_ci(CHART / "ci/scaling-only-values.yaml"), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    (container,) = pod_of(job)["containers"]
    assert "--allow-unknown" not in container["args"]
    (token,) = [entry for entry in container["env"] if entry["name"] == "QUEUE_DEPTH_TOKEN"]
    assert token["valueFrom"]["secretKeyRef"] == {"name": "queue-depth-client", "key": "token", "optional": True}


@every_ci_file
def test_the_checks_run_as_they_are_written_on_exactly_the_triggers_of_the_release(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests = of_ci(path)
    scaled_objects = of_kind(manifests, "ScaledObject")
    for check in of_kind(manifests, "Job") + of_kind(manifests, "Pod"):
        pod = pod_of(check)
        config = one(manifests, "ConfigMap", pod["volumes"][0]["configMap"]["name"])
        (name, text), *_ = config["data"].items()
        assert [document for document in yaml.safe_load_all(text) if document] == scaled_objects
        mount = pod["containers"][0]["volumeMounts"][0]["mountPath"]
        (tmp_path / name).write_text(text)
        arguments = [word.replace(mount, str(tmp_path), 1) for word in pod["containers"][0]["args"]]
        arguments[arguments.index("--url") + 1] = "http://127.0.0.1:1"
        assert cli.main(arguments) == 1
        assert "gives no answer" in capsys.readouterr().out


def test_argo_cd_checks_between_the_exporter_and_the_scaled_objects() -> None:
    manifests = of_ci(CHART / "ci/argocd-values.yaml")
    job = one(manifests, "Job")
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "Sync"
    wave = "argocd.argoproj.io/sync-wave"
    assert job["metadata"]["annotations"][wave] == "1"
    for manifest in of_kind(manifests, "ScaledObject") + of_kind(manifests, "TriggerAuthentication"):
        assert manifest["metadata"]["annotations"][wave] == "2"
    assert wave not in one(manifests, "Deployment")["metadata"].get("annotations", {})
    assert "--allow-unknown" not in pod_of(job)["containers"][0]["args"]


def test_a_plain_job_is_another_one_when_the_triggers_change() -> None:
    def name(maximum: int) -> str:
        written = pool(f"maxReplicaCount: {maximum}") | {"contractCheck": {"as": "job"}}
        job = one(render(written), "Job")
        assert "annotations" not in job["metadata"]
        found: str = job["metadata"]["name"]
        return found

    assert name(3) == name(3)
    assert name(3) != name(4)


def test_the_names_of_a_long_release_are_ones_that_the_api_takes() -> None:
    longest = "a123456789-b123456789-c123456789-d123456789-e12345678"
    for kind in ("helm", "job"):
        written = pool() | {"contractCheck": {"as": kind}, "auth": {"tokens": ["t"]}, "nameOverride": longest}
        for manifest in render(written, release=longest):
            assert len(manifest["metadata"]["name"]) <= 63
            assert all(len(label) <= 63 for label in manifest["metadata"]["labels"].values())


def test_two_releases_in_one_namespace_share_no_name_and_select_no_pod_of_the_other() -> None:
    names = [
        {
            (m["kind"], m["metadata"].get("namespace", "ns"), m["metadata"]["name"])
            for m in render(pool(f"{{name: emails-{release}}}") | {"auth": {"tokens": ["t"]}}, release=release)
        }
        for release in ("blue", "green")
    ]
    assert not names[0] & names[1]
    selector = one(render(pool(), release="blue"), "Service")["spec"]["selector"]
    other = one(render(pool(), release="green"), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= other.items()


def test_another_chart_can_contain_this_one(tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "charts/queue-depth")
    dependency = {"name": "queue-depth", "version": "0.1.0", "condition": "scaling.enabled"}
    chart = {"apiVersion": "v2", "name": "shop", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart))
    inner = {"queue-depth": pool(), "global": {"imageRegistry": "a.example"}, "scaling": {"enabled": True}}
    assert render(inner, chart=tmp_path) == render(pool())
    assert not render(inner | {"scaling": {"enabled": False}}, chart=tmp_path)


def test_the_check_can_be_left_out() -> None:
    manifests = render(pool() | {"contractCheck": {"enabled": False}})
    assert not of_kind(manifests, "Job")
    assert one(manifests, "Pod")["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_further_manifests_are_templates() -> None:
    manifests = of_ci(CHART / "ci/trial-values.yaml")
    assert one(manifests, "ConfigMap", "r-dashboard")["data"] == {"note": "made by the chart"}
    assert one(manifests, "ConfigMap", "depth-text")


def test_the_chart_stays_out_of_the_workers_replicas() -> None:
    for manifest in (*of_ci(CHART / "ci/many-pools-values.yaml"), *render({}, chart=EXAMPLE)):
        if manifest["kind"] in ("Deployment", "StatefulSet") and manifest["metadata"]["name"] != "r-queue-depth":
            assert "replicas" not in manifest["spec"]


def test_the_example_worker_has_an_id_of_its_own_a_version_and_time_to_drain() -> None:
    deployment = one(render({"drainSeconds": 600}, chart=EXAMPLE), "Deployment")
    kubernetes_validate.validate(deployment, "1.36", strict=True)
    (container,) = pod_of(deployment)["containers"]
    environment = {entry["name"]: entry for entry in container["env"]}
    assert environment["DBOS__VMID"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert environment["DBOS__APPVERSION"]["value"] == "1"
    assert pod_of(deployment)["terminationGracePeriodSeconds"] > int(environment["DRAIN_SECONDS"]["value"]) == 600
    run([helm(), "lint", "--strict", EXAMPLE])
