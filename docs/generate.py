"""Write the pages that are generated from the code; with --check, say which are out of date instead."""  # noqa: INP001 - a script

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from queue_depth.metrics import reference as metrics
from queue_depth.settings import reference as settings

PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": settings.markdown,
    "example-config.yaml": settings.example,
    "metrics.md": metrics.markdown,
}


def main() -> int:
    """Run, and return the exit code: 1 where --check finds an outdated page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is out of date")
    check = parser.parse_args().check
    code = 0
    for name, written in PAGES.items():
        path = Path(__file__).parent / name
        text = written()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            print(f"docs/{name} is out of date: run python docs/generate.py", file=sys.stderr)  # noqa: T201
            code = 1
        else:
            path.write_text(text, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
