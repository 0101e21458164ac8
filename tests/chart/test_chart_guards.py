"""What would go wrong in the cluster is refused while rendering, with what would happen and how to mend it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.helm import refusal, template

POOL: dict[str, Any] = {"target": {"name": "worker"}, "maxReplicaCount": 10}


def good(*, pools: dict[str, Any] | None = None, **over: Any) -> dict[str, Any]:  # noqa: ANN401 - values
    return {
        "image": {"repository": "registry.example/queue-depth"},
        "database": {"existingSecret": {"name": "db"}},
        "pools": {"p": POOL} if pools is None else pools,
        **over,
    }


def pool(**over: Any) -> dict[str, Any]:  # noqa: ANN401 - values
    return good(pools={"p": {**POOL, **over}})


def scaling(*, exporter: dict[str, Any] | None = None, **over: Any) -> dict[str, Any]:  # noqa: ANN401 - values
    return {
        "image": {"repository": "registry.example/queue-depth"},
        "exporter": {"enabled": False, "url": "http://queue-depth.queue-depth.svc:8080", **(exporter or {})},
        "pools": {"p": POOL},
        **over,
    }


RELEASE = {
    "no-image": (
        good(image={}),
        "image.repository is not set: there would be no image to pull. Set it to where your image",
    ),
    "no-image-for-the-check": (scaling(image={}), "image.repository is not set"),
    "tag-in-repository": (good(image={"repository": "a.example:5000/q:1"}), "holds a tag or digest"),
    "digest-in-repository": (good(image={"repository": "a.example/q@sha256:1"}), "holds a tag or digest"),
    "latest": (
        good(image={"repository": "a.example:5000/q", "tag": "latest"}),
        'image.tag is "latest": two pods could run different versions',
    ),
    "tag-and-digest": (
        good(image={"repository": "a.example/q", "tag": "1", "digest": "sha256:" + "0" * 64}),
        "the tag would be ignored in silence",
    ),
    "no-database": (good(database={}), "no database is named: the exporter would not start"),
    "two-databases": (
        good(database={"urlFile": "/a", "url": "postgresql://h/d"}),
        "database.url and database.urlFile are set together",
    ),
    "no-database-url": (good(database={"url": "mysql://h/d"}), "database.url is no connection URL"),
    "database-behind-the-policy": (
        good(database={"url": "postgresql://u:1@[fd00::1]:6432/d"}),
        "database.url is at port 6432 and networkPolicy.database.port is 5432: the exporter would not reach it",
    ),
    "database-at-the-usual-port-behind-the-policy": (
        good(database={"url": "postgresql://h/d?x=:1"}, networkPolicy={"database": {"port": 6432}}),
        "database.url is at port 5432 and networkPolicy.database.port is 6432",
    ),
    "one-of-two-databases-behind-the-policy": (
        good(database={"url": "postgresql://u:p@a:5432,b:5433/d"}),
        "database.url is at port 5433 and networkPolicy.database.port is 5432",
    ),
    "secret-in-environment": (
        good(exporter={"extraEnv": [{"name": "PGPASSWORD", "value": "x"}]}),
        "exporter.extraEnv sets PGPASSWORD",
    ),
    "setting-in-environment": (
        good(exporter={"extraEnv": [{"name": "QUEUE_DEPTH_POOLS", "value": "{}"}]}),
        "exporter.extraEnv sets QUEUE_DEPTH_POOLS: it would win over what the chart mounts",
    ),
    "killed-while-answering": (
        good(exporter={"preStopSeconds": 25}),
        "exporter.terminationGracePeriodSeconds is 30: the pod would be killed while it still answers",
    ),
    "nobody-to-ask": (scaling(exporter={"url": ""}), "exporter.url is not set: the triggers would ask nobody"),
    "nothing-to-do": (scaling(pools={}), "no pool is scaled: the release would do nothing"),
    "nothing-to-scrape": (
        scaling(metrics={"podMonitor": {"enabled": True}}),
        "exporter.enabled is false and metrics are on",
    ),
    "tokens-nobody-reads": (scaling(auth={"tokens": ["t"]}), "auth has the exporter's tokens: nobody would read them"),
    "config-nobody-reads": (scaling(config={"schema": "x"}), "config or database is set: nobody would read it"),
    "database-nobody-reads": (scaling(database={"urlFile": "/x"}), "config or database is set: nobody would read it"),
    "url-with-path": (scaling(exporter={"url": "http://h:1/"}), "is not http(s)://HOST:PORT"),
    "url-with-credentials": (scaling(exporter={"url": "http://u:p@h:1"}), "is not http(s)://HOST:PORT"),
    "url-without-scheme": (good(exporter={"url": "queue-depth:8080"}), "is not http(s)://HOST:PORT"),
    "two-sets-of-tokens": (
        good(auth={"tokensFile": "/t", "tokensSecret": {"name": "s"}, "clientSecret": {"name": "c"}}),
        "auth.tokensSecret.name and auth.tokensFile are set together",
    ),
    "two-client-secrets": (
        good(auth={"tokens": ["t"], "clientSecret": {"name": "c"}}),
        "the chart would write one Secret and the triggers read another",
    ),
    "prometheus-without-token": (
        good(pools={}, auth={"tokensFile": "/t"}, metrics={"serviceMonitor": {"enabled": True}}),
        "Prometheus would be answered 401",
    ),
    "keda-without-token": (
        good(auth={"tokensSecret": {"name": "s"}}),
        "pools.p: the exporter has tokens and KEDA has none: every poll would be answered 401",
    ),
    "scraped-twice": (
        good(metrics={"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}),
        "every series would be there twice",
    ),
}

POOLS = {
    "name-too-long": (pool(name="x" * 55), "has 55 characters, and KEDA's HPA keda-hpa-… can have 63"),
    "no-kubernetes-name": (good(pools={"My.Queue": POOL}), "Set pools.My.Queue.name; the pool keeps its own"),
    "same-name": (
        good(pools={"a": {**POOL, "name": "x"}, "b": {**POOL, "name": "x", "target": {"name": "other"}}}),
        "pools.a and pools.b are both the ScaledObject ns/x",
    ),
    "same-target": (
        good(pools={"a": POOL, "b": POOL}),
        "pools.a and pools.b both scale Deployment ns/worker: two HPAs would fight over it",
    ),
    "no-target": (good(pools={"p": {"maxReplicaCount": 1}}), "pools.p.target.name is not set"),
    "no-maximum": (good(pools={"p": {"target": {"name": "w"}}}), "maxReplicaCount is not set: KEDA would go up to 100"),
    "minimum-above-maximum": (pool(minReplicaCount=11), "minReplicaCount 11 is above maxReplicaCount 10"),
    "idle-above-zero": (pool(minReplicaCount=3, idleReplicaCount=1), "only 0 works in KEDA"),
    "idle-at-minimum": (pool(idleReplicaCount=0), "must be below minReplicaCount, which is 0"),
    "fallback-of-zero": (
        pool(fallback={"replicas": 0}),
        "fallback.replicas is 0: while the exporter is away, KEDA would take busy pods to zero. Set at least 1.",
    ),
    "fallback-below-minimum": (pool(minReplicaCount=3, fallback={"replicas": 2}), "is below minReplicaCount 3"),
    "fallback-above-maximum": (pool(fallback={"replicas": 11}), "fallback.replicas 11 is above maxReplicaCount 10"),
    "static-fallback": (
        pool(fallback={"behavior": "static"}),
        'fallback.behavior "static" would take busy pods away while the exporter is away',
    ),
    "lower-fallback": (pool(fallback={"behavior": "currentReplicasIfLower"}), "would take busy pods away"),
    "no-initial-cooldown": (
        pool(initialCooldownPeriod=0),
        "a Deployment that runs already could go to zero with KEDA's first poll",
    ),
    "raw-without-w": (pool(mode="raw"), "workerConcurrency is not set: KEDA would start a pod for every workflow"),
    "w-in-two-places": (pool(workerConcurrency=4), "two places would drift apart"),
    "queue-without-raw": (
        scaling(pools={"p": {**POOL, "queue": "q"}}),
        "a floor of one queue is too low for pods that serve others too",
    ),
    "queue-of-a-known-pool": (
        pool(mode="raw", workerConcurrency=4, queue="q"),
        "pools.p.queue is for exporters that know no pools",
    ),
    "never-shrinks": (
        pool(minReplicaCount=1, scaleIn={"mode": "whenIdle"}),
        "scaleIn.mode is whenIdle and minReplicaCount is 1: pods would never go",
    ),
    "busy-pods-go-after-all": (
        pool(scaleIn={"mode": "whenIdle"}, behavior={"scaleDown": {"selectPolicy": "Max"}}),
        "busy pods would go after all",
    ),
    "never-down-to-the-floor": (
        pool(behavior={"scaleDown": {"selectPolicy": "Disabled"}}),
        "pods would never go down to the floor. Set scaleIn.mode: whenIdle.",
    ),
    "paused-by-number": (pool(pausedReplicaCount=3), "paused is false: KEDA would pause all the same"),
    "paused-by-annotation": (
        pool(annotations={"autoscaling.keda.sh/paused": "false"}),
        "it would work against what the values say. Use paused.",
    ),
    "frozen-scale-out": (
        pool(behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
        "behavior.scaleUp.selectPolicy is Disabled: work would wait for ever beside one pod",
    ),
    "work-between-two-numbers": (
        pool(mode="raw", workerConcurrency=4, cooldownPeriod=14),
        "what starts in between is in neither, and its pod would go. Set at least three pollingInterval (15).",
    ),
    "work-between-two-numbers-of-two-snapshots": (
        pool(cooldownPeriod=0, initialCooldownPeriod=1),
        "pools.p.cooldownPeriod is 0: KEDA asks for the two numbers one after the other",
    ),
    "no-window": (
        pool(scaleIn={"stabilizationWindowSeconds": 0}),
        "pools.p.scaleIn.stabilizationWindowSeconds is 0: a pod would go at every dip, and it may be a busy one",
    ),
    "no-window-by-override": (
        pool(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}),
        "pools.p.behavior.scaleDown.stabilizationWindowSeconds is 0",
    ),
    "w-among-the-defaults-of-no-raw-pool": (
        good(
            pools={"a": POOL, "b": {**POOL, "target": {"name": "other"}}},
            poolDefaults={"workerConcurrency": 4},
        ),
        "poolDefaults.workerConcurrency is for mode: raw",
    ),
    "utilization-of-no-resource": (
        pool(extraTriggers=[{"type": "cron", "metricType": "Utilization", "metadata": {}}]),
        "metricType Utilization is for cpu and memory",
    ),
    "trigger-name-taken": (
        pool(extraTriggers=[{"type": "cron", "name": "backlog", "metadata": {}}]),
        'extraTriggers: the name "backlog" is taken',
    ),
    "value-compounds": (
        pool(extraTriggers=[{"type": "cron", "metricType": "Value", "metadata": {}}]),
        "metricType Value is multiplied by the ready pods at every sync",
    ),
    "two-authentications": (
        pool(authenticationRef={"name": "a"}, tokenSecret={"name": "s"}),
        "pools.p has authenticationRef and tokenSecret",
    ),
    "exporter-keys-nobody-reads": (
        scaling(pools={"p": {**POOL, "queues": ["q"]}}),
        "pools.p.queues is the exporter's configuration and exporter.enabled is false",
    ),
}


@pytest.mark.parametrize(("values", "words"), [*RELEASE.values(), *POOLS.values()], ids=[*RELEASE, *POOLS])
def test_a_mistake_is_refused_with_what_would_happen_and_a_mend(values: dict[str, Any], words: str) -> None:
    (told,) = refusal(values)
    assert words in told
    assert told.endswith(".")
    assert told.count(". ") >= 1 or told.count(": ") >= 1


@pytest.mark.parametrize(
    "values",
    [
        good(),
        scaling(),
        pool(mode="raw", workerConcurrency=4, cooldownPeriod=15),
        pool(cooldownPeriod=15, initialCooldownPeriod=1),
        pool(minReplicaCount=1, cooldownPeriod=0),
        pool(scaleIn={"mode": "whenIdle", "stabilizationWindowSeconds": 0}),
        pool(scaleIn={"mode": "frozen", "stabilizationWindowSeconds": 0}),
        pool(scaleIn={"stabilizationWindowSeconds": 0}, behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}),
        good(pools={"p": {**POOL, "mode": "replicas"}}, poolDefaults={"mode": "raw", "workerConcurrency": 4}),
        good(database={"url": "postgresql://u:9@[fd00::1]/d"}),
        good(database={"url": "postgresql://h:1/d"}, networkPolicy={"enabled": False}),
        pool(extraTriggers=[{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "80"}}]),
    ],
)
def test_what_the_mistakes_are_made_from_is_good(values: dict[str, Any]) -> None:
    assert template(values).returncode == 0


def test_all_mistakes_are_told_at_once() -> None:
    values = good(image={}, database={}, pools={"a": {}, "b": {**POOL, "minReplicaCount": 11}})
    assert len(refusal(values)) == 5


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            good(),
            "the cluster has no ScaledObject: the API server would refuse the release halfway. Install KEDA first",
        ),
        (good(pools={}, metrics={"serviceMonitor": {"enabled": True}}), "the cluster has no ServiceMonitor"),
        (good(pools={}, metrics={"podMonitor": {"enabled": True}}), "the cluster has no PodMonitor"),
    ],
)
def test_an_object_that_the_cluster_does_not_have_is_refused(values: dict[str, Any], words: str) -> None:
    (told,) = refusal(values, apis=[])
    assert words in told


@pytest.mark.parametrize(
    "values",
    [
        pool(scaleUpTolerance="always"),
        pool(behavior={"scaleUp": {"tolerance": "0.05"}}),
        pool(behavior={"scaleDown": {"tolerance": 0}}),
    ],
)
def test_a_tolerance_that_the_cluster_would_drop_is_refused(values: dict[str, Any]) -> None:
    (told,) = refusal(values, kubernetes="1.32.0")
    assert "an HPA has no tolerance of its own before Kubernetes 1.33" in told
    assert template(values, kubernetes="1.33.0").returncode == 0


def test_a_name_that_is_none_for_a_service_is_refused() -> None:
    (told,) = refusal(good(fullnameOverride="2nd"))
    assert 'the name "2nd" begins with a digit: the API server would refuse the exporter\'s Service.' in told
    assert template(scaling(fullnameOverride="2nd")).returncode == 0


def test_a_cluster_that_is_too_old_is_refused() -> None:
    assert "incompatible with Kubernetes" in template(good(), kubernetes="1.26.0").stderr
