"""KEDA as its releases install it: its own manifests, with its own service account and rights, webhook included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from cluster.api import has_condition
from cluster.processes import ClusterError
from harness.program import ProgramFailedError
from harness.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.api import Api, Kubectl, Manifest

NAMESPACE = "keda"
DEPLOYMENTS = ("keda-operator", "keda-metrics-apiserver", "keda-admission")
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"

READY_SECONDS = 120

# Idle pods cannot go to 3 at least: the webhook refuses it, which shows that it is asked.
REFUSED: Manifest = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "refused", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"name": "nothing"},
        "minReplicaCount": 1,
        "idleReplicaCount": 3,
        "triggers": [
            {"type": "metrics-api", "metadata": {"url": "http://x", "valueLocation": "x", "targetValue": "1"}}
        ],
    },
}


def install(kubectl: Kubectl, api: Api, source: Path) -> None:
    """Apply KEDA's manifests and wait until it scales, serves metrics to the HPA, and validates.

    Args:
        source: KEDA's source tree.

    Raises:
        ClusterError: It does not in time.
    """
    rendered = kubectl("kustomize", str(source / "config/default"))
    manifests = [_made_quick(found) for found in yaml.load_all(rendered, yaml.CSafeLoader)]
    definitions = [found for found in manifests if found["kind"] in {"Namespace", "CustomResourceDefinition"}]
    kubectl.apply(*definitions)
    kubectl.apply(*(found for found in manifests if found not in definitions))
    for what, condition in (
        ("KEDA's pods are ready", lambda: all(_is_available(api, name) for name in DEPLOYMENTS)),
        ("KEDA's metrics are served", lambda: has_condition(api.get(API_SERVICE), "Available")),
        ("KEDA's webhook refuses a bad ScaledObject", lambda: _refuses(kubectl)),
    ):
        try:
            wait_until(condition, READY_SECONDS, what)
        except TimeoutError as error:
            raise ClusterError(str(error)) from error


def _made_quick(manifest: Manifest) -> Manifest:
    if manifest["kind"] == "Deployment":
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        for probe in ("livenessProbe", "readinessProbe"):
            # 20 seconds for what takes two.
            container[probe].pop("initialDelaySeconds", None)
            container[probe]["periodSeconds"] = 10
    if manifest["kind"] == "ValidatingWebhookConfiguration":
        for webhook in manifest["webhooks"]:
            # A test must not pass because nobody was asked.
            webhook["failurePolicy"] = "Fail"
    return manifest


def _is_available(api: Api, deployment: str) -> bool:
    return has_condition(api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{deployment}"), "Available")


def _refuses(kubectl: Kubectl) -> bool:
    try:
        kubectl.apply(REFUSED, dry_run=True)
    except ProgramFailedError as error:
        return "vscaledobject.kb.io" in str(error) and "denied the request" in str(error)
    return False
