"""Generated pages are up to date, and the example file works."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from harness.program import ProgramFailedError, run
from queue_depth.settings.load import load
from queue_depth.settings.model import Settings, settings_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/example-config.yaml"


def test_the_generated_pages_are_up_to_date() -> None:
    run([sys.executable, ROOT / "docs/generate.py", "--check"])


def test_all_that_is_generated_is_written_by_one_script(tmp_path: Path) -> None:
    written = ("docs/configuration.md", "docs/example-config.yaml", "docs/metrics.md", "contract/openapi.json")
    for folder in ("docs", "contract"):
        (tmp_path / folder).mkdir()
    # Of the chart's files parts are generated, so they are there before.
    shutil.copytree(ROOT / "helm/queue-depth", tmp_path / "helm/queue-depth")
    shutil.copy(ROOT / "docs/chart.py", tmp_path / "docs")
    script = shutil.copy(ROOT / "docs/generate.py", tmp_path / "docs")
    run([sys.executable, script])
    for name in written:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), name
    (tmp_path / "contract/openapi.json").write_text("{}")
    with pytest.raises(ProgramFailedError, match=r"contract/openapi\.json is out of date"):
        run([sys.executable, script, "--check"])


def test_the_example_holds_every_default() -> None:
    assert load({}, {"PGHOST": "h"}, config=str(EXAMPLE)) == load({}, {"PGHOST": "h"})


@pytest.mark.parametrize("given", ["database_url", "database_url_file"])
def test_the_example_is_valid_with_its_comments_removed(tmp_path: Path, given: str) -> None:
    files = {name: tmp_path / name for name in ("database-url", "tokens")}
    files["database-url"].write_text("postgresql://h/db")
    files["tokens"].write_text("token")
    text = re.sub(r"^#(?! )|^#(?=  )", "", EXAMPLE.read_text(), flags=re.MULTILINE)
    text = text.replace("/etc/queue-depth", str(tmp_path))
    config = tmp_path / "config.yaml"
    everything = yaml.safe_load(text)
    assert everything.keys() == settings_of(Settings).keys()
    config.write_text(
        yaml.safe_dump({k: v for k, v in everything.items() if not k.startswith("database") or k == given})
    )
    settings = load({}, {}, config=str(config))
    assert set(settings.queues) == {"orders"}
    assert set(settings.pools) == {"workers"}
