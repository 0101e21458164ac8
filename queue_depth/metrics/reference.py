"""`docs/metrics.md`, written from the same table that the series come from."""

# ruff: noqa: E501  # Markdown: a sentence is a line

from collections.abc import Iterable

from queue_depth.core.eligibility import Stranding
from queue_depth.core.errors import REASONS
from queue_depth.metrics.families import DEPTH_FAMILIES, OWN_FAMILIES, Family
from queue_depth.metrics.labels import OTHER

_INTRODUCTION = f"""# Metrics

`GET /metrics` answers in the Prometheus text format, or in OpenMetrics where the `Accept` header asks for it.
A scrape reads the last snapshot from memory: it never touches the database, and any number of scrapers cost the same statements.

While there is no snapshot young enough (`QUEUE_DEPTH_MAX_AGE_SECONDS`), every `dbos_` series is absent and `queue_depth_up` is 0.
Series are built anew from each snapshot, so queues and versions that are gone leave with their series.
Label values are the names in DBOS's tables; no workflow id, partition key or executor id ever is a label.

[monitoring.md](monitoring.md) says which of them to alert on.

## Bounded labels

Each of the labels `queue`, `pool`, `application` and `version` has a limit of distinct values.
Beyond it, values share the value `{OTHER}`: registered queues, configured pools, and the latest versions keep their names first, the rest go by name.
The choice depends on the snapshot alone, so replicas of the exporter agree.
`queue_depth_folded_label_values` says how many values share `{OTHER}`.
Something really called `{OTHER}` is shown as `_{OTHER}`, with one underscore more; so is `_{OTHER}` itself, and so on.
The last column of the table says what `{OTHER}` shows: the sum, the earliest time, or nothing where no number would be true.
"""

_FOLDING = {"": "", "sum": "sum", "earliest": "earliest", "left out": "nothing"}

_STRANDING = {
    Stranding.UNREGISTERED_QUEUE: "no process polls the queue: it has no row in `queues`, and none of its work runs",
    Stranding.OTHER_APPLICATION: "the row names another application than the one that owns the queue",
    Stranding.VERSION: "its version is not the latest, and no executor of that version holds running work",
    Stranding.NO_PARTITION_KEY: "the queue is partitioned and the row has no key",
}


def markdown() -> str:
    """The whole page."""
    parts = [
        _INTRODUCTION,
        "## DBOS\n",
        _table(DEPTH_FAMILIES),
        "Values of `reason`:\n",
        "\n".join(f"* `{reason.value}`: {_STRANDING[reason]}" for reason in Stranding) + "\n",
        "## The exporter itself\n",
        _table(OWN_FAMILIES),
        "Values of `outcome`: " + ", ".join(f"`{outcome}`" for outcome in ("success", *REASONS)) + ".\n",
        "Counters and the histogram come with the `_created` series of the Prometheus client.",
    ]
    return "\n".join(parts) + "\n"


def _table(families: Iterable[Family]) -> str:
    lines = [
        "| metric | type | labels | meaning | `_other` |",
        "| --- | --- | --- | --- | --- |",
    ]
    for family in families:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        meaning = f"{family.help} {family.note}".strip()
        lines.append(f"| `{family.name}` | {family.type} | {labels} | {meaning} | {_FOLDING[family.folding]} |")
    return "\n".join(lines) + "\n"
