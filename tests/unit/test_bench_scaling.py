"""The arithmetic of the scaling benchmark; what it measures needs a cluster (`make bench-scaling`)."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scaling import page
from scaling.loads import LOADS, Bursts, Job, Lengths, Load, Poisson, most_at_once
from scaling.measures import Measures, course, measure, percentile, together, union
from scaling.observed import Loaded, Observation, Pod, Record, Run
from scaling.policies import CHART, POLICIES, SLOTS, Policy
from scaling.targets import overall, targets

if TYPE_CHECKING:
    from pathlib import Path

DONE = Run(enqueued=0, started=10, ended=40, pod="a", attempts=1)
A = Pod("a", made=2, started=3, launched=8, ended=63, gone=63.5)

CHART_NEEDS = {"image": {"repository": "x"}, "database": {"existingSecret": {"name": "x"}}}

NOTHING = Observation("p", "a policy", over=None, failures=0, runs=(), pods=(), replicas=())


def seen(
    runs: list[Run], pods: list[Pod], replicas: tuple[tuple[float, int], ...] = (), over: float | None = None
) -> Measures:
    observation = replace(NOTHING, runs=tuple(runs), pods=tuple(pods), replicas=replicas, over=over)
    return measure(observation, 100)


@pytest.mark.parametrize(
    ("run", "pod", "interrupted"),
    [
        (DONE, A, 0),
        (replace(DONE, ended=None), A, 1),
        (replace(DONE, ended=None), replace(A, ended=None, gone=None), 0),  # it still runs
        (replace(DONE, ended=None, started=None, pod=""), A, 0),  # it still waits
        (replace(DONE, attempts=2), A, 1),  # it was recovered, and ended elsewhere
    ],
)
def test_a_run_is_interrupted_when_its_pod_ended_first_or_it_was_started_again(
    run: Run, pod: Pod, interrupted: int
) -> None:
    assert seen([run], [pod]).interrupted == interrupted


@pytest.mark.parametrize(
    ("run", "wait"),
    [
        (DONE, 10),
        (replace(DONE, enqueued=4), 6),
        (replace(DONE, ended=None), 10),  # interrupted: it did start
        (replace(DONE, enqueued=30, started=None, ended=None), 70),  # to the end
    ],
)
def test_a_job_waits_until_it_starts_and_to_the_end_if_it_never_does(run: Run, wait: float) -> None:
    assert seen([run], [A]).waits == (wait,)


@pytest.mark.parametrize(
    ("pod", "over", "seconds"),
    [
        (A, None, 60.5),  # until nothing is left of it
        (replace(A, gone=None), None, 97),  # to the end of observation
        (replace(A, gone=None), 80, 77),  # the policy is through, others are not
        (replace(A, made=-9, started=-8), None, 63.5),  # it was there before the load
        (replace(A, started=90, gone=95), 80, 0),  # it came when the policy was through
    ],
)
def test_pod_minutes_count_while_there_is_a_pod_and_the_policy_is_not_through(
    pod: Pod, over: float | None, seconds: float
) -> None:
    assert seen([DONE], [pod], over=over).pod_minutes * 60 == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("runs", "idle"),
    [
        ([], 60.5),
        ([DONE], 30.5),
        ([DONE, replace(DONE, started=30, ended=50)], 20.5),  # together for ten seconds
        ([DONE, replace(DONE, pod="b", ended=60)], 30.5),  # another pod's
        ([replace(DONE, ended=None)], 7.5),  # held until the pod was cut off
    ],
)
def test_a_pod_is_idle_while_it_holds_no_run(runs: list[Run], idle: float) -> None:
    assert seen(runs, [A]).idle_pod_minutes * 60 == pytest.approx(idle)


def test_scalings_are_changes_and_pod_starts_are_of_pods_made_during_the_load() -> None:
    early = replace(A, name="early", made=-5, started=-4, launched=1)
    cut = replace(A, name="cut", launched=None)
    found = seen([], [A, early, cut], replicas=((0, 1), (7, 4), (20, 3), (40, 0)))
    assert [found.scale_ups, found.scale_downs, found.most_pods] == [1, 2, 3]
    assert found.pod_starts == (6,)


def test_several_loads_are_added_up() -> None:
    one = seen([DONE, replace(DONE, ended=None)], [A], replicas=((0, 0), (2, 1)))
    other = seen([replace(DONE, started=7)], [A, replace(A, name="b", launched=7)], replicas=((0, 0), (2, 2), (64, 0)))
    both = together([one, other])
    assert [both.interrupted, both.scale_ups, both.scale_downs, both.most_pods] == [1, 2, 1, 2]
    assert list(both.waits) == [7, 10, 10]
    assert list(both.pod_starts) == [5, 6, 6]
    assert [both.pod_minutes, both.idle_pod_minutes] == pytest.approx(
        [one.pod_minutes + other.pod_minutes, one.idle_pod_minutes + other.idle_pod_minutes]
    )


def test_intervals_join_and_are_counted() -> None:
    assert union([(5, 6), None, (0, 3), (1, 2), (3, 4)]) == [(0, 4), (5, 6)]
    assert course([(0, 2), (1, 3)]) == [(0, 1), (1, 2), (2, 1), (3, 0)]


@pytest.mark.parametrize(("per_cent", "value"), [(50, 2), (51, 3), (95, 4), (100, 4)])
def test_a_percentile_is_the_smallest_that_so_many_do_not_exceed(per_cent: float, value: float) -> None:
    assert percentile([1, 2, 3, 4], per_cent) == value
    assert percentile([], per_cent) == 0


def loaded(*observations: Observation) -> Loaded:
    return Loaded("bursts", "some jobs.", window=150, end=100, work=240, observations=observations)


@pytest.mark.parametrize(
    ("name", "start", "other_lost", "other_gone", "missed"),
    [
        ("all is well", 10, True, 63.5, []),
        ("31 s: 25 and a start of 6", 31, True, 63.5, []),
        ("a second more", 32, True, 63.5, ["longest wait, s"]),
        ("another loses none", 10, False, 63.5, ["runs interrupted"]),
        ("another loses as many, and is cheaper", 10, True, 50, ["pod-minutes"]),
        ("another is as cheap as 1.15 times", 10, True, 56, []),
    ],
)
def test_the_targets(name: str, start: float, other_lost: bool, other_gone: float, missed: list[str]) -> None:  # noqa: FBT001 - a table
    own = replace(NOTHING, policy=CHART, runs=(replace(DONE, started=start, ended=None),), pods=(A,))
    run = replace(DONE, ended=None if other_lost else 40)
    other = replace(NOTHING, policy="raw", runs=(run,), pods=(replace(A, gone=other_gone),))
    found = targets(loaded(own, other))
    assert [target.what for target in found if not target.passed] == missed, name


def test_the_cheapest_of_those_that_interrupt_as_few_bounds_the_cost() -> None:
    lost = replace(DONE, ended=None)
    others = [
        replace(NOTHING, policy="dear", runs=(lost,), pods=(A,)),
        replace(NOTHING, policy="cheap", runs=(lost,), pods=(replace(A, gone=33),)),
        replace(NOTHING, policy="cheaper, but loses more", runs=(lost, lost), pods=(replace(A, gone=13),)),
    ]
    cost = targets(loaded(replace(others[0], policy=CHART), *others))[-1]
    assert cost.at_most * 60 == pytest.approx(1.15 * 30)


def test_over_all_loads_a_run_more_under_one_of_them_is_no_miss() -> None:
    lost = replace(NOTHING, policy=CHART, runs=(replace(DONE, ended=None),), pods=(A,))
    kept = replace(lost, runs=(DONE,))
    other = replace(lost, policy="raw", runs=(replace(DONE, ended=None),) * 2)
    loads = [loaded(lost, replace(kept, policy="raw")), loaded(kept, other)]
    assert [target.passed for load in loads for target in targets(load) if target.what == "runs interrupted"] == [
        False,
        True,
    ]
    assert [target.passed for target in overall(loads)] == [True, True]
    assert overall([loaded(lost), loads[1]]) == []


def test_without_this_chart_there_is_nothing_to_reach() -> None:
    assert targets(loaded(replace(NOTHING, runs=(DONE,)))) == []


def test_a_record_is_read_back_as_it_was_written_and_its_page_shows_every_policy(tmp_path: Path) -> None:
    own = replace(NOTHING, policy=CHART, runs=(DONE,), pods=(A,), replicas=((0, 0), (2, 1)), over=64)
    lost = replace(
        own, policy="raw", runs=(replace(DONE, ended=None), replace(DONE, started=None, ended=None)), over=None
    )
    record = Record("2026-12-01T00:00:00+00:00", 7, {"Kubernetes": "v1"}, (loaded(own, lost),))
    page.write(record, tmp_path)
    assert page.read(tmp_path / "scaling.json") == record
    written = (tmp_path / "scaling.md").read_text()
    assert "| `queue-depth` | 0 | 10.0 |" in written
    assert "| `raw` | 1, 1 never started |" in written
    assert "`raw` was not through after 100 s" in written
    assert "(scaling-bursts.svg)" in written
    assert json.loads((tmp_path / "scaling.json").read_text())["measures"]["bursts"]["raw"]["interrupted"] == 1
    picture = ET.parse(tmp_path / "scaling-bursts.svg")  # noqa: S314 - our own
    assert {"queue-depth", "raw", "wanted", "interrupted"} <= {
        "".join(text.itertext()).strip() for text in picture.iter() if text.tag.endswith("}text")
    }


def test_the_published_page_is_what_its_record_says() -> None:
    assert (page.DOCS / "scaling.md").read_text() == page.markdown(page.read(page.DOCS / "scaling.json"))


def test_a_load_is_the_same_for_every_run_of_a_seed_and_another_for_another() -> None:
    load = Load("x", "some jobs.", (Bursts(every=60, times=3, fewest=2, most=4), Poisson(0.1, 120)), Lengths(15, 1, 30))
    jobs = load.jobs(1)
    assert jobs == load.jobs(1) != load.jobs(2)
    assert jobs == sorted(jobs, key=lambda job: job.at)
    assert 0 < min(job.seconds for job in jobs) < max(job.seconds for job in jobs) == 30
    at = [job.at for job in jobs]
    assert all(at.count(moment) >= 2 for moment in (0, 60, 120))
    assert any(moment not in {0, 60, 120} for moment in at)


def test_most_at_once_counts_overlaps_and_those_that_begin_late() -> None:
    jobs = [Job(0, 10), Job(10, 10), Job(15, 10)]
    assert most_at_once(jobs) == 2
    assert most_at_once(jobs, late=6) == 3


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_the_slots_suffice_for_every_load(load: Load) -> None:
    assert most_at_once(load.jobs(1), late=45) <= SLOTS


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_policies_differ_from_the_chart_in_nothing_but_what_they_scale_on(policy: Policy) -> None:
    assert _scaled_object(policy)["minReplicaCount"] == policy.minimum
    # With a minimum the chart leaves out what only matters from and to zero.
    own = _scaled_object(replace(policy, minimum=0))
    charts = _scaled_object(next(one for one in POLICIES if one.name == CHART))
    urls = {trigger["metadata"].get("url") for trigger in own["triggers"]}
    assert urls <= {None, "http://exporter.shop.svc:8080/v1/pools/jobs"}
    modifiers = own["advanced"].pop("scalingModifiers", {"activationTarget": "0"})
    activations = [value for one in own["triggers"] for key, value in one["metadata"].items() if "activation" in key]
    assert {modifiers["activationTarget"], *activations} == {"0"}
    del own["triggers"], charts["triggers"]
    assert own == charts


def _scaled_object(policy: Policy) -> dict[str, Any]:
    made = policy.scaled_object({**CHART_NEEDS, **policy.values(150)}, "shop")
    spec: dict[str, Any] = made["spec"]
    return spec
