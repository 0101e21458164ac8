"""The real Helm, built from its Go module, and what it makes of a chart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from harness.cache import cached
from harness.golang import go

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION = "v4.3.2"

CHART = Path(__file__).parents[2] / "helm/queue-depth"
CI_FILES = sorted((CHART / "ci").glob("*-values.yaml"))

KUBERNETES = "1.36.0"
APIS = (
    "keda.sh/v1alpha1/ScaledObject",
    "monitoring.coreos.com/v1/ServiceMonitor",
    "monitoring.coreos.com/v1/PodMonitor",
)

Manifest = dict[str, Any]


def helm() -> Path:
    """Return the program; built on first use, which takes minutes on a machine without Go's build cache."""
    return cached(f"helm-{VERSION}", _build) / "helm"


def _build(folder: Path) -> None:
    go("install", "-trimpath", f"helm.sh/helm/v4/cmd/helm@{VERSION}", cwd=folder, GOBIN=str(folder))


def template(
    values: Mapping[str, Any] | Path,
    *options: str,
    chart: Path = CHART,
    release: str = "r",
    kubernetes: str = KUBERNETES,
    apis: Iterable[str] = APIS,
) -> subprocess.CompletedProcess[str]:
    """Run `helm template` for a release in the namespace `ns`, whatever comes of it."""
    written = values.read_text() if isinstance(values, Path) else json.dumps(values)
    return subprocess.run(
        [
            *(helm(), "template", release, chart, "--namespace", "ns", "--values", "-", "--kube-version", kubernetes),
            *(word for api in apis for word in ("--api-versions", api)),
            *options,
        ],
        input=written,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def render(values: Mapping[str, Any] | Path, *options: str, **where: Any) -> list[Manifest]:  # noqa: ANN401 - template's
    """Return the objects that the chart makes of the values; the arguments are those of `template`."""
    done = template(values, *options, **where)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]


def refusal(values: Mapping[str, Any], **where: Any) -> list[str]:  # noqa: ANN401 - template's
    """Return the mistakes that the chart finds in the values."""
    done = template(values, **where)
    assert done.returncode != 0, "the chart was rendered"
    _, found, told = done.stderr.partition("queue-depth cannot be rendered:\n")
    assert found, done.stderr
    return [line.removeprefix("  * ") for line in told.splitlines() if line.startswith("  * ")]


def one(manifests: Iterable[Manifest], kind: str, name: str | None = None) -> Manifest:
    """Return the one object of that kind, and name where one is given."""
    (found,) = of_kind(manifests, kind, name)
    return found


def of_kind(manifests: Iterable[Manifest], kind: str, name: str | None = None) -> list[Manifest]:
    """Return the objects of that kind, and name where one is given."""
    return [m for m in manifests if m["kind"] == kind and name in (None, m["metadata"]["name"])]
