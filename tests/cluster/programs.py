"""The programs of the control plane and of KEDA, built from their Go modules and kept by version outside the tree."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.cache import cached
from harness.golang import go

HERE = Path(__file__).parent

KUBERNETES_MODULE = "k8s.io/kubernetes"
KEDA_MODULE = "github.com/kedacore/keda/v2"

KUBERNETES_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kubectl")
# By the names that KEDA's own images and manifests give them.
KEDA_PROGRAMS = {"keda": "operator", "keda-adapter": "adapter", "keda-admission-webhooks": "webhooks"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Which Kubernetes and which KEDA are tested together, as Go versions (`v1.36.3`)."""

    kubernetes: str
    keda: str

    @property
    def minor(self) -> int:
        """Kubernetes' minor version: 36."""
        return int(self.kubernetes.split(".")[1])


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the built programs are.

    Attributes:
        kubernetes: Folder with etcd, kube-apiserver, kube-controller-manager and kubectl.
        keda: Folder with keda, keda-adapter and keda-admission-webhooks.
        keda_source: KEDA's own source tree, with the manifests of its releases.
    """

    kubernetes: Path
    keda: Path
    keda_source: Path


def pinned() -> Pair:
    """Return the pair that the go.mod files name."""
    return Pair(_required("kubernetes", KUBERNETES_MODULE), _required("keda", KEDA_MODULE))


def build(pair: Pair) -> Programs:
    """Build what the cache does not have yet. Cold it takes a quarter of an hour on two cores, and 5 GB.

    Raises:
        ProgramFailedError: No Go, no network, or no such version; carries what Go said.
    """
    kubernetes = cached(f"kubernetes-{pair.kubernetes}-{_recipe('kubernetes')}", partial(_build_kubernetes, pair))
    keda = cached(f"keda-{pair.keda}-{_recipe('keda')}", partial(_build_keda, pair.keda))
    return Programs(kubernetes / "bin", keda / "bin", keda / "source")


def _build_kubernetes(pair: Pair, folder: Path) -> None:
    version = pair.kubernetes
    module = folder / "module"
    shutil.copytree(HERE / "kubernetes", module)
    if version != pinned().kubernetes:
        _move_to(version, module)
    stamp = " ".join(
        f"-X k8s.io/component-base/version.{name}={value}"
        for name, value in (("gitVersion", version), ("gitMajor", "1"), ("gitMinor", pair.minor))
    )
    (folder / "bin").mkdir()
    _go_build("./etcd", folder / "bin/etcd", module)
    for program in KUBERNETES_PROGRAMS:
        _go_build(f"{KUBERNETES_MODULE}/cmd/{program}", folder / "bin" / program, module, stamp)


def _move_to(version: str, module: Path) -> None:
    """Have the module require another Kubernetes, which replaces modules that it lists itself, of its own version."""
    told = json.loads(go("mod", "download", "-json", f"{KUBERNETES_MODULE}@{version}", cwd=module))
    staged = re.findall(r"(\S+) => \./staging/", Path(told["GoMod"]).read_text())
    file = module / "go.mod"
    # What it requires indirectly is found anew: versions do not have all their modules in common.
    directly, end, _ = file.read_text().replace(pinned().kubernetes, version).partition("\n)\n")
    # `v0.36.3` of a module goes with `v1.36.3` of the whole.
    replaced = "".join(f"replace {name} => {name} {version.replace('v1.', 'v0.', 1)}\n" for name in staged)
    file.write_text(directly + end + replaced)
    go("mod", "tidy", cwd=module)


def _build_keda(version: str, folder: Path) -> None:
    if version == pinned().keda:
        # Against the checksums of go.sum.
        source = Path(go("list", "-m", "-f", "{{.Dir}}", KEDA_MODULE, cwd=_downloaded(HERE / "keda")).strip())
    else:
        source = Path(json.loads(go("mod", "download", "-json", f"{KEDA_MODULE}@{version}", cwd=folder))["Dir"])
    (folder / "bin").mkdir()
    for program, command in KEDA_PROGRAMS.items():
        # In its own tree, so that its own replacements hold.
        _go_build(f"./cmd/{command}", folder / "bin" / program, source)
    # Its manifests outlive Go's module cache, and are writable.
    shutil.copytree(source / "config", folder / "source/config", copy_function=shutil.copyfile)


def _downloaded(module: Path) -> Path:
    go("mod", "download", KEDA_MODULE, cwd=module)
    return module


def _go_build(package: str, program: Path, module: Path, link: str = "") -> None:
    go("build", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {link}", "-o", program, package, cwd=module)


def _required(module: str, requirement: str) -> str:
    found = re.search(rf"{re.escape(requirement)} (v\S+)", (HERE / module / "go.mod").read_text())
    assert found, f"{module}/go.mod requires no {requirement}"
    return found[1]


def _recipe(module: str) -> str:
    """A digest of the module that is built."""
    files = sorted(path for path in (HERE / module).rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]
