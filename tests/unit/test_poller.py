"""One refresh: what is stored, and what is said."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.reads import read
from harness.stores import empty_store
from queue_depth.core.errors import DatabaseUnreachableError, ReadError, ReadTimeoutError
from queue_depth.core.limits import QueueLimits
from queue_depth.core.liveness import NO_WITNESS, LivenessView
from queue_depth.core.table import SchemaNote, TableRead
from queue_depth.poller import Poller

if TYPE_CHECKING:
    import pytest

TABLE = read(limits={"a": QueueLimits(), "b": QueueLimits()})
NOTE = SchemaNote("no queues table", "limits of queues are unknown")


@dataclass
class Script:
    """A reader that answers as it was told, and nobody who watches processes."""

    answers: list[TableRead | ReadError]

    async def read(self) -> TableRead:
        answer = self.answers.pop(0)
        if isinstance(answer, ReadError):
            raise answer
        return answer

    def view(self) -> LivenessView:
        return NO_WITNESS


async def said_by(caplog: pytest.LogCaptureFixture, *answers: TableRead | ReadError) -> list[str]:
    script = Script(list(answers))
    store = empty_store()
    poller = Poller(
        reader=script, witness=script, store=store, pools={}, refresh_seconds=1, observe_duration=lambda _: None
    )
    with caplog.at_level(logging.INFO):
        for _ in answers:
            await poller.refresh()
    assert store.outcomes.total() == len(answers)
    return [record.getMessage() for record in caplog.records if record.name == "queue_depth.poller"]


async def test_a_change_of_state_is_one_line_and_its_repetition_none(caplog: pytest.LogCaptureFixture) -> None:
    down, slow = DatabaseUnreachableError("refused"), ReadTimeoutError("slow")
    said = await said_by(caplog, down, down, slow, TABLE, TABLE, down)
    assert said == [
        "cannot read the workflow table: refused",
        "cannot read the workflow table: slow",
        "reading the workflow table: 2 queues known",
        "this DBOS schema has all that the numbers need",
        "cannot read the workflow table: refused",
    ]


async def test_what_the_schema_lacks_is_said_at_the_start_and_after_an_upgrade(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lacking = replace(TABLE, notes=(NOTE,))
    said = await said_by(caplog, lacking, lacking, TABLE)
    assert said[1:] == [f"this DBOS schema has {NOTE}", "this DBOS schema has all that the numbers need"]
