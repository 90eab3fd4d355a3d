"""The answers of redra about the audit logs of an independent control plane.

An honest log is not accused. One in which the control plane did one thing wrong is, and the objects
of the fault are named.
"""

import json
import re

import pytest

from tests import draws
from tests.plane.faults import FAULTS
from tests.plane.runs import KINDS, judged, run, run_with_fault

SEEDS = (*range(100, 110), *range(200, 215))
FEWER = ("late", "slow", "skew")
"""Kinds of which five seeds of each hundred are run."""
EARLIER_STATE = "the scheduler decided on a state that had just changed"
UNPROVED = ("unexplained", "impossible")

CLAIMS = "the claim controller writes a claim of a pod whose end it has not seen, or not again"
OTHER_WAKE = "an attempt came to something else, or did not come, and others follow from it"
RULE = "pods that are evicted while the process is replaced, or its cache lags, are counted twice"

ACCUSED = {
    ("late", 203): OTHER_WAKE,
    ("late", 204): OTHER_WAKE,
    ("restarts", 211): RULE,
    ("servers", 104): CLAIMS,
    ("slow", 103): OTHER_WAKE,
    ("trouble", 105): CLAIMS,
    ("trouble", 207): RULE,
    ("trouble", 210): OTHER_WAKE,
    ("trouble", 214): OTHER_WAKE,
}
"""Honest worlds that a decide replay accuses still, and the suspected cause of each."""

PLANTED = (
    ("another_device", "plain", 102, "decide"),
    ("another_device", "plain", 103, "decide"),
    ("another_device", "trouble", 100, "verify"),
    ("another_device", "trouble", 103, "verify"),
    ("changed_claim", "plain", 100, "decide"),
    ("changed_claim", "plain", 101, "decide"),
    ("changed_claim", "trouble", 100, "decide"),
    ("changed_claim", "trouble", 101, "decide"),
    ("collected_alive", "plain", 102, "decide"),
    ("collected_alive", "trouble", 100, "decide"),
    ("collected_alive", "trouble", 102, "decide"),
    ("collected_alive", "trouble", 103, "decide"),
    ("double", "plain", 102, "decide"),
    ("double", "plain", 103, "decide"),
    ("double", "trouble", 100, "verify"),
    ("double", "trouble", 103, "verify"),
    ("early_release", "plain", 100, "decide"),
    ("early_release", "trouble", 100, "verify"),
    ("early_release", "trouble", 101, "verify"),
    ("early_release", "trouble", 102, "decide"),
    ("evicted_without_taint", "trouble", 107, "decide"),
    ("evicted_without_taint", "trouble", 110, "decide"),
    ("forgotten_pod", "plain", 101, "decide"),
    ("forgotten_pod", "trouble", 102, "decide"),
    ("forgotten_pod", "plain", 100, "decide"),
    ("forgotten_pod", "plain", 102, "decide"),
    ("forgotten_pod", "trouble", 100, "decide"),
    ("forgotten_pod", "trouble", 101, "decide"),
    ("missing_release", "plain", 102, "decide"),
    ("missing_release", "trouble", 101, "decide"),
    ("missing_release", "trouble", 102, "decide"),
    ("missing_release", "trouble", 103, "decide"),
    ("never_again", "plain", 101, "decide"),
    ("never_again", "trouble", 102, "decide"),
    ("no_eviction", "trouble", 107, "decide"),
    ("no_eviction", "trouble", 112, "decide"),
    ("no_eviction", "trouble", 116, "decide"),
    ("no_eviction", "trouble", 119, "decide"),
    ("no_reservation", "plain", 102, "decide"),
    ("no_reservation", "plain", 103, "decide"),
    ("no_reservation", "trouble", 100, "decide"),
    ("no_reservation", "trouble", 102, "decide"),
    ("other_node", "plain", 106, "decide"),
    ("other_node", "plain", 107, "decide"),
    ("other_node", "trouble", 107, "decide"),
    ("refused_though_fits", "plain", 101, "decide"),
    ("refused_though_fits", "trouble", 101, "decide"),
    ("wrong_text", "plain", 100, "decide"),
    ("wrong_text", "plain", 101, "decide"),
    ("wrong_text", "trouble", 100, "decide"),
    ("wrong_text", "trouble", 101, "decide"),
)
"""Faults at their second occasion in a world where they change what can be seen in its log."""


RIGHT_BEFORE = (
    ("other_node", "trouble", 100),
    ("other_node", "late", 100),
    ("other_node", "slow", 107),
)
"""Faults that chose what was right for a state less than a tenth of a second before."""


def worlds(accused=None):
    for kind in KINDS:
        for seed in SEEDS:
            if kind in FEWER and seed % 100 > 4:
                continue
            reason = (accused or {}).get((kind, seed))
            known = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            yield pytest.param(kind, seed, marks=[draws.BY_DAY, *known])


@pytest.mark.parametrize(("kind", "seed"), list(worlds()))
def test_honest_log_verifies(tmp_path, kind, seed):
    code, report = judged(run(kind, seed, tmp_path), "verify")
    assert code in (0, 3), report


@pytest.mark.parametrize(("kind", "seed"), list(worlds(ACCUSED)))
def test_honest_log_is_explained(tmp_path, kind, seed):
    code, report = judged(run(kind, seed, tmp_path), "decide")
    assert code in (0, 3), (report["violations"], unproved(report))


@pytest.mark.parametrize(("fault", "kind", "seed", "mode"), [draws.by_day(*row) for row in PLANTED])
def test_fault_is_named(tmp_path, fault, kind, seed, mode):
    paths, names = run_with_fault(fault, 2, kind, seed, tmp_path)
    code, report = judged(paths, mode)
    assert code == 1, names
    parts = ("violations", "invariants", "allocations")
    said = json.dumps([unproved(report), *map(report.get, parts)])
    assert names
    assert [name for name in names if not _is_in(name, said)] == []


@pytest.mark.parametrize(("fault", "kind", "seed"), [draws.by_day(*row) for row in RIGHT_BEFORE])
def test_choice_that_was_right_a_moment_before_is_a_race(tmp_path, fault, kind, seed):
    """A cache that lags shows that state; nothing tells the two apart."""
    paths, [name] = run_with_fault(fault, 2, kind, seed, tmp_path)
    code, report = judged(paths, "decide")
    proved = {each["detail"] for each in report["differences"] if name in each["subject"]}
    assert (code, unproved(report)) == (3, [])
    assert any(EARLIER_STATE in detail for detail in proved)


def test_every_fault_is_planted_somewhere():
    assert {row[0] for row in PLANTED} == set(FAULTS)


def _is_in(name, said):
    """Whether a text has a name, or one that begins with it if it ends with a dash."""
    return re.search(rf"(?<![\w-]){name}" + ("" if name.endswith("-") else r"(?!\w)"), said)


def unproved(report):
    return [each for each in report.get("differences", ()) if each["class"] in UNPROVED]
