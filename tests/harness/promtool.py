"""Prometheus' own checker of what an exporter says."""

from __future__ import annotations

import subprocess

from harness.debian import program


def check_metrics(exposition: str) -> str:
    """Return promtool's complaints about metrics in the text format; empty if it has none.

    It checks the syntax and the naming rules, such as `_total` for counters and a HELP text for each family.
    """
    path, environment = program("prometheus", "usr/bin/promtool")
    checked = subprocess.run(
        [path, "check", "metrics"],
        input=exposition,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    complaints = (checked.stdout + checked.stderr).strip()
    # A complaint about style leaves the exit code at 0 or 3, one about syntax at 1.
    assert checked.returncode == 0 or complaints
    return complaints
