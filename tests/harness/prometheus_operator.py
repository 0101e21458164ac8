"""The Prometheus Operator's own definitions of its kinds, taken from its Go module."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import cached
from harness.golang import go

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = "github.com/prometheus-operator/prometheus-operator"
VERSION = "v0.85.0"
# Go's own checksum of the module, as a go.sum would hold it.
CHECKSUM = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="

KINDS = ("ServiceMonitor", "PodMonitor")


def definitions() -> Mapping[str, Path]:
    """Return, by kind, the file with its CustomResourceDefinition; downloaded on first use."""
    folder = cached(f"prometheus-operator-{VERSION}", _download)
    return {kind: folder / _file(kind) for kind in KINDS}


def _download(folder: Path) -> None:
    told = json.loads(go("mod", "download", "-json", f"{MODULE}@{VERSION}", cwd=folder))
    assert told["Sum"] == CHECKSUM, f"{MODULE} {VERSION} is another than it was: {told['Sum']}"
    for kind in KINDS:
        source = Path(told["Dir"]) / "example/prometheus-operator-crd" / _file(kind)
        shutil.copyfile(source, folder / source.name)


def _file(kind: str) -> str:
    return f"monitoring.coreos.com_{kind.lower()}s.yaml"
