"""The cluster is what a cluster is, and the chart is what its API server takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from cluster.pod import TESTS
from harness.helm import CHART, CI_FILES, one, render
from harness.program import ProgramFailedError
from harness.prometheus_operator import definitions
from harness.waiting import wait_until

if TYPE_CHECKING:
    from cluster.api import Manifest
    from cluster.cluster import Cluster
    from cluster.prepared import Prepared

EXAMPLES_NAMESPACES = ("ns", "shop", "finance", "media")

SANDBOXED = "from cluster.sandbox import run_in_sandbox; run_in_sandbox(['sleep', '{}'])"


@pytest.fixture
def monitors(cluster: Cluster) -> None:
    """The kinds of the Prometheus Operator, which itself is not here."""
    found = [yaml.safe_load(path.read_text()) for path in definitions().values()]
    cluster.kubectl.apply(*found)
    for definition in found:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{definition['metadata']['name']}")


@pytest.fixture
def namespaces(cluster: Cluster) -> None:
    """The namespaces that the chart's examples name; they stay, as other processes' tests use them too."""
    cluster.kubectl.apply(
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in EXAMPLES_NAMESPACES)
    )


@pytest.mark.parametrize("path", CI_FILES, ids=lambda path: path.stem.removesuffix("-values"))
@pytest.mark.usefixtures("namespaces", "monitors")
def test_the_api_server_and_kedas_webhook_take_every_object_of_the_chart(
    cluster: Cluster, prepared_cluster: Prepared, path: Path
) -> None:
    version = prepared_cluster.pair.kubernetes.removeprefix("v")
    manifests = render(path, kubernetes=version)
    for manifest in manifests:
        manifest["metadata"].setdefault("namespace", "ns")
    cluster.kubectl.apply(*manifests, dry_run=True)


@pytest.mark.usefixtures("namespaces")
def test_the_api_server_takes_the_example_worker(cluster: Cluster) -> None:
    cluster.kubectl.apply(*render({}, chart=CHART.parent / "examples/worker"), dry_run=True)


@pytest.mark.usefixtures("namespaces", "monitors")
def test_a_misspelt_field_of_the_prometheus_operator_would_be_noticed(cluster: Cluster) -> None:
    monitor = one(render(CHART / "ci/many-pools-values.yaml"), "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["autorization"] = {}
    with pytest.raises(ProgramFailedError, match="autorization"):
        cluster.kubectl.apply(monitor, dry_run=True)


@pytest.mark.usefixtures("namespaces")
def test_kedas_webhook_refuses_a_second_scaled_object_for_the_same_pods(cluster: Cluster) -> None:
    cluster.kubectl.apply(scaled_object("first"))
    with pytest.raises(ProgramFailedError, match=r"vscaledobject\.kb\.io.*denied"):
        cluster.kubectl.apply(scaled_object("second"))


@pytest.mark.usefixtures("namespaces")
def test_a_service_account_without_rights_has_none(cluster: Cluster) -> None:
    who = "--as=system:serviceaccount:ns:default"
    with pytest.raises(ProgramFailedError, match="cannot list resource"):
        cluster.kubectl("get", "pods", "--namespace=ns", who)


def test_nothing_outlives_a_sandbox_that_is_killed() -> None:
    marker = "86399.5"
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen([sys.executable, "-c", SANDBOXED.format(marker)], env=environment) as sandbox:
        wait_until(lambda: sleepers(marker) != [], 20, "the command runs")
        sandbox.send_signal(signal.SIGKILL)
    wait_until(lambda: sleepers(marker) == [], 20, "the command is gone")


def scaled_object(name: str) -> Manifest:
    trigger = {"type": "metrics-api", "metadata": {"url": "http://x", "valueLocation": "x", "targetValue": "1"}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"scaleTargetRef": {"name": "worker"}, "triggers": [trigger]},
    }


def sleepers(marker: str) -> list[str]:
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", marker.encode()]:
            found.append(command.parent.name)
    return found
