"""Write the files that are generated from the code; with --check, say which are out of date instead."""  # noqa: INP001 - a script

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import chart
from queue_depth.contract import openapi
from queue_depth.metrics import reference as metrics
from queue_depth.settings import reference as settings

ROOT = Path(__file__).parents[1]

FILES: dict[str, Callable[[], str]] = {
    "docs/configuration.md": settings.markdown,
    "docs/example-config.yaml": settings.example,
    "docs/metrics.md": metrics.markdown,
    "contract/openapi.json": openapi.rendered,
    "helm/queue-depth/values.schema.json": chart.schema,
    "helm/queue-depth/README.md": chart.readme,
}


def main() -> int:
    """Run, and return the exit code: 1 where --check finds an outdated file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is out of date")
    check = parser.parse_args().check
    code = 0
    for name, written in FILES.items():
        path = ROOT / name
        text = written()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            print(f"{name} is out of date: run python docs/generate.py", file=sys.stderr)  # noqa: T201
            code = 1
        else:
            path.write_text(text, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
