from __future__ import annotations

from queue_depth.metrics.labels import BoundedLabel


def by_name(_: str) -> int:
    return 0


def test_values_within_the_limit_keep_their_names() -> None:
    label = BoundedLabel(["b", "a", "b"], by_name, 2)
    assert (label.of("a"), label.of("b")) == ("a", "b")
    assert label.named == ("a", "b")
    assert label.folded == frozenset()


def test_values_beyond_the_limit_share_one_name() -> None:
    label = BoundedLabel(["c", "a", "b"], by_name, 1)
    assert [label.of(value) for value in "abc"] == ["a", "_other", "_other"]
    assert label.folded == {"b", "c"}


def test_a_lower_rank_keeps_its_name_before_an_earlier_name() -> None:
    label = BoundedLabel(["a", "z"], lambda value: value != "z", 1)
    assert (label.of("a"), label.of("z")) == ("_other", "z")


def test_the_order_of_the_values_does_not_matter() -> None:
    values = [f"queue-{number}" for number in range(50)]
    assert BoundedLabel(values, by_name, 10).named == BoundedLabel(reversed(values), by_name, 10).named


def test_values_that_are_really_called_other_stay_apart_from_the_shared_one_and_from_each_other() -> None:
    values = ["_other", "__other", "___other", "a", "z"]
    label = BoundedLabel(values, lambda value: value == "z", 4)
    shown = [label.of(value) for value in values]
    assert shown == ["__other", "___other", "____other", "a", "_other"]


def test_names_that_only_contain_other_are_left_alone() -> None:
    values = ["other", "x_other", "_others", "_other\n"]
    label = BoundedLabel(values, by_name, 10)
    assert [label.of(value) for value in values] == values
