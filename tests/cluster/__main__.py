"""Run a command beside a Kubernetes cluster: `python -m cluster [OPTIONS] -- COMMAND…`.

Builds what is needed, once, and runs the command in a sandbox, where it can start the cluster (`cluster.prepared`).
Logs are kept when the command fails, and nothing else ever is.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from cluster.images import install_exporter
from cluster.prepared import Prepared
from cluster.programs import Pair, build, pinned
from cluster.sandbox import SandboxError, run_in_sandbox
from harness.helm import helm
from harness.postgres_binaries import client_programs, server_programs
from harness.program import ProgramFailedError
from harness.prometheus_operator import definitions
from harness.watchdog import Watchdog

PROJECT = Path(__file__).parents[2]


def main() -> int:
    """Run the command and return its exit code."""
    given = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="queue-depth-cluster-"))
    watchdog = Watchdog(folder, folder / "no-server.pid")
    logs = folder / "logs"
    logs.mkdir()
    try:
        pair = Pair(given.kubernetes, given.keda)
        print(f"Kubernetes {pair.kubernetes}, KEDA {pair.keda}; built now if not in the cache", flush=True)
        helm()
        definitions()
        server_programs(18)
        client_programs()
        Prepared(pair, build(pair), install_exporter(PROJECT, folder), folder, logs).leave()
        folder.chmod(0o711)  # workers, exporter and KEDA are not root
        code = run_in_sandbox(given.command)
        if code != 0:
            shutil.rmtree(given.logs, ignore_errors=True)
            shutil.copytree(logs, given.logs)
            print(f"logs of the cluster and of all pods: {given.logs}", file=sys.stderr)
    except (SandboxError, ProgramFailedError) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        watchdog.finish()
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kubernetes", default=pinned().kubernetes, help="version, such as v1.36.3")
    parser.add_argument("--keda", default=pinned().keda, help="version, such as v2.21.0")
    parser.add_argument("--logs", type=Path, default=PROJECT / "build/cluster", help="where logs of a failure go")
    parser.add_argument("command", nargs="+", help="what to run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
