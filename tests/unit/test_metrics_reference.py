from __future__ import annotations

from pathlib import Path

from queue_depth.core.eligibility import Stranding
from queue_depth.metrics import families, reference
from queue_depth.metrics.families import DEPTH_FAMILIES, OWN_FAMILIES, Family

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_names_every_family_of_the_module_once() -> None:
    defined = {family.name for family in vars(families).values() if isinstance(family, Family)}
    assert defined == {family.name for family in (*DEPTH_FAMILIES, *OWN_FAMILIES)}
    page = reference.markdown()
    for name in defined:
        assert page.count(f"| `{name}` |") == 1


def test_the_reference_explains_every_reason_for_stranding() -> None:
    page = reference.markdown()
    assert [reason for reason in Stranding if f"* `{reason.value}`: " not in page] == []


def test_the_published_page_is_what_the_table_says() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == reference.markdown()


def test_the_alerts_name_only_metrics_that_exist() -> None:
    text = (DOCS / "monitoring.md").read_text(encoding="utf-8")
    named = {
        word
        for line in text.splitlines()
        for word in line.replace("`", " ").replace("(", " ").replace("{", " ").replace("[", " ").split()
        if word.startswith(("dbos_queue_", "dbos_pool_", "queue_depth_"))
    }
    suffixes = ("_bucket", "_sum", "_count")
    known = {family.name for family in (*DEPTH_FAMILIES, *OWN_FAMILIES)}
    unknown = {name for name in named if name.rstrip(",.):") not in known and not name.endswith(suffixes)}
    assert named
    assert unknown == set()
