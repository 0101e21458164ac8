"""The benchmarks run, so that they do not rot; what they measure in their small mode means nothing."""

from __future__ import annotations

import json

import pytest

from benchmarks import report
from benchmarks.__main__ import BENCHMARKS, measured
from benchmarks.bench import SMALL
from benchmarks.results import Row, Section, p50, p99


def test_every_benchmark_runs_and_its_findings_are_written() -> None:
    sections, about = measured(list(BENCHMARKS), SMALL)
    assert list(sections) == list(BENCHMARKS)
    for section in sections.values():
        assert any(row.has_target for row in section.rows), section.title
    page = report.markdown(sections, about, "make bench")
    assert all(f"## {section.title} (`{name}`)" in page for name, section in sections.items())
    document = json.loads(report.as_json(sections, about, "make bench"))
    assert set(document["benchmarks"]) == set(BENCHMARKS)
    statements = {row.what: row.verdict for row in sections["statements"].rows}
    assert "MISS" not in statements.values(), "more ScaledObjects, more statements"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("ratio", 3.0, "x", at_most=3), "PASS"),
        (Row("ratio", 3.1, "x", at_most=3), "MISS"),
        (Row("times", 20.0, "x", at_least=20), "PASS"),
        (Row("times", 19.9, "x", at_least=20), "MISS"),
        (Row("the same", 108.0, "", at_most=108, at_least=108), "PASS"),
        (Row("the same", 107.0, "", at_most=108, at_least=108), "MISS"),
        (Row("to compare with", 1e9, "x"), ""),
    ],
)
def test_a_row_passes_within_its_bounds_and_has_no_verdict_without_any(row: Row, verdict: str) -> None:
    assert row.verdict == verdict
    section = Section("Title", "Text.", [row])
    assert f"| {verdict} |" in report.markdown({"name": section}, {}, "make bench")


def test_percentiles_are_in_milliseconds_and_the_99th_of_few_is_the_greatest() -> None:
    assert p50([0.001, 0.002, 0.003]) == pytest.approx(2)
    assert p99([0.003, 0.001, 0.002]) == pytest.approx(3)
    assert p99([number / 1000 for number in range(1, 201)]) == pytest.approx(199)
