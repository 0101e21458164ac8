from __future__ import annotations

import math
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reads import read
from queue_depth.core.snapshot import Snapshot
from queue_depth.web.names import NamesInOrder, decode
from queue_depth.web.problems import ProblemError


@pytest.mark.parametrize(
    ("segment", "name"),
    [
        (b"emails", "emails"),
        (b"a.b-c_d~e", "a.b-c_d~e"),
        (b"a%2Fb", "a/b"),
        (b"a%2fb", "a/b"),
        (b"a%20b", "a b"),
        (b"a+b", "a+b"),
        (b"100%25", "100%"),
        (b"%252F", "%2F"),
        (b"..", ".."),
        (b"%2E%2E", ".."),
        (b"gr%C3%BC%C3%9Fe", "grüße"),
        (b"%00", "\0"),
        (b"a;b=c,d", "a;b=c,d"),
    ],
)
def test_a_segment_is_the_name_percent_encoded(segment: bytes, name: str) -> None:
    assert decode(segment) == name


@given(st.text(min_size=1))
def test_every_name_survives_the_url(name: str) -> None:
    assert decode(quote(name, safe="").encode()) == name


@pytest.mark.parametrize("segment", [b"100%", b"%zz", b"%2", b"%C3", b"%FF", b"\xff"])
def test_a_segment_that_is_no_percent_encoded_utf_8_is_refused(segment: bytes) -> None:
    with pytest.raises(ProblemError) as refused:
        decode(segment)
    assert refused.value.reason == "bad_request"


@given(st.sets(st.text(max_size=3), max_size=30), st.integers(1, 7))
def test_pages_give_every_name_once_and_in_order(names: set[str], limit: int) -> None:
    snapshot = Snapshot(read(limits={}))
    in_order = NamesInOrder(lambda _: tuple(sorted(names - {""})))
    seen: list[str] = []
    after, more, pages = "", True, 0
    while more:
        pages += 1
        page, after = in_order.page(snapshot, after=after, limit=limit)
        assert len(page) <= limit
        seen += page
        more = after != ""
    assert seen == sorted(names - {""})
    assert pages == max(1, math.ceil(len(seen) / limit))


def test_a_page_may_begin_after_a_name_that_is_not_there() -> None:
    in_order = NamesInOrder(lambda _: ("a", "c", "d"))
    assert in_order.page(Snapshot(read()), after="b", limit=1) == (("c",), "c")
    assert in_order.page(Snapshot(read()), after="z", limit=1) == ((), "")


def test_names_are_taken_from_each_snapshot_once() -> None:
    taken: list[Snapshot] = []

    def names_of(snapshot: Snapshot) -> tuple[str, ...]:
        taken.append(snapshot)
        return snapshot.queues

    in_order = NamesInOrder(names_of)
    first, second = Snapshot(read()), Snapshot(read(limits={}))
    for _ in range(2):
        assert in_order.page(first, after="", limit=9) == (("q",), "")
    assert in_order.page(second, after="", limit=9) == ((), "")
    assert taken == [first, second]
