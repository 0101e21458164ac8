"""The Kubernetes API as tests read it, and kubectl for what writes to it."""

from __future__ import annotations

import json
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from harness.program import ProgramFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Manifest = dict[str, Any]


class Api:
    """Reads by path: `/api/v1/namespaces/x/pods`. Cheap enough to be asked again and again.

    Args:
        kubeconfig: File that names server, authority and client certificate or token.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._http = httpx.Client(**connection(kubeconfig))

    def get(self, path: str, **parameters: str) -> Manifest:
        """Return an object or a list.

        Raises:
            httpx.HTTPStatusError: It does not exist, or may not be read.
        """
        answer = self._http.get(path, params=parameters)
        answer.raise_for_status()
        found: Manifest = answer.json()
        return found

    def items(self, path: str, **parameters: str) -> list[Manifest]:
        """Return the objects of a list."""
        found: list[Manifest] = self.get(path, **parameters)["items"]
        return found

    def status(self, path: str) -> int:
        """Return the HTTP status of a read; 0 while nobody answers."""
        try:
            return self._http.get(path).status_code
        except httpx.TransportError:
            return 0

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class Kubectl:
    """The real kubectl."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._program, self._kubeconfig = program, kubeconfig

    def __call__(self, *words: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Run it and return what it printed.

        Raises:
            ProgramFailedError: It failed; carries what it said.
        """
        command = [str(self._program), f"--kubeconfig={self._kubeconfig}", *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout)
        if done.returncode != 0:
            raise ProgramFailedError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *manifests: Manifest, dry_run: bool = False) -> None:
        """Apply manifests on the server's side; with `dry_run` validate them there, admission included."""
        options = ["--dry-run=server"] if dry_run else []
        self("apply", "--server-side", "--force-conflicts", *options, "-f", "-", stdin=yaml.safe_dump_all(manifests))

    def patch(self, what: str, namespace: str, patch: Mapping[str, Any]) -> None:
        """Merge into an object (`deployment/x`)."""
        self("patch", what, f"--namespace={namespace}", "--type=merge", f"--patch={json.dumps(patch)}")

    def dump(self, folder: Path, namespace: str, kinds: Iterable[str]) -> None:
        """Write all objects of these kinds of a namespace into files, for whoever reads why a test failed."""
        for kind in kinds:
            try:
                text = self("get", kind, f"--namespace={namespace}", "--output=yaml")
            except ProgramFailedError as error:
                text = str(error)
            (folder / f"{kind}.yaml").write_text(text)


def has_condition(manifest: Manifest, kind: str) -> bool:
    """Whether an object says of itself that a condition is true."""
    conditions = manifest.get("status", {}).get("conditions") or []
    return any(found["type"] == kind and found["status"] == "True" for found in conditions)


def connection(kubeconfig: Path) -> dict[str, Any]:
    """Return the arguments of an httpx client for the cluster that a kubeconfig of ours names."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return {
        "base_url": cluster["server"],
        "verify": _trusting(cluster["certificate-authority"], user["client-certificate"], user["client-key"]),
        "timeout": 30,
        "trust_env": False,
    }


def write_kubeconfig(path: Path, server: str, authority: Path, certificate: Path, key: Path) -> None:
    """Write how to reach a server, and as whom."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "u", "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))


def _trusting(authority: str, certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    return context
