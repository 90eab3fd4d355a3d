"""Decisions that another program wrote are folded whatever stands in them."""

import pytest

from app.analysis.views import LiveViews, compiler_of, features_of
from app.domain.controllers import reconcilers, registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling import repeated_attempts
from app.domain.log import DECISION, Actor, Draft, EventType, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.objects.profile import Profile
from tests.cluster import T0
from tests.fuzz.mutations import ODD

GATES = {"DRADeviceTaintRules": True, "DRAResourcePoolStatus": True}
INPUTS = ("rules", "follows", "attempts", "assumed", "uid", "now", "next", "bindAt", "plugins")
OUTCOMES = ("Evicted", "Assumed", "Reserved", "Unschedulable", "Cancelled", "Removed", "Released")
NESTED = (
    {"assumed": {"claims": [["a", "u", True], 5, ["b"]], "allocations": [{}, {}]}},
    {"assumed": {"claims": 5, "extended": {"tree": {}, "mappings": 5}}},
    {"attempts": [{"pods": [["n", "p", "u", 1, 2, 3], ["n"], 5], "outcome": 5}, 5]},
    {"attempts": [{"pods": 5}]},
    {"rules": [["one"], ["a", 5], 5, ["r", "u", "x"]]},
    {"follows": ["first", "never", 5]},
)


def fold_all(bodies):
    """All controllers fold decisions with these bodies, one after the other."""
    profile = Profile(gates=GATES)
    views = LiveViews(profile)
    working = reconcilers.controllers(
        profile, features_of(profile), compiler_of(profile), ControllerOptions()
    )
    key = DECISION._replace(namespace="default", name="p")
    stamp = Stamp(time=T0, actor=Actor(user="x"), verb="decide")
    for revision, body in enumerate(bodies, start=1):
        draft = Draft(type=EventType.DECISION_RECORDED, key=key, uid="", tree=body, stamp=stamp)
        event = seal(draft, Revision(revision), bytes(32))
        views.fold(event)
        for controller in working:
            controller.fold(event, views)


@pytest.mark.parametrize("name", registry.NAMES)
def test_decision_with_odd_inputs_is_folded(name):
    base = {"controller": name, "namespace": "default", "name": "p"}
    fold_all(
        base | {"outcome": outcome, "inputs": inputs} | key
        for outcome in OUTCOMES
        for inputs in NESTED
        for key in ({}, {"key": repeated_attempts.KEY})
    )


@pytest.mark.parametrize("part", ["outcome", "inputs", "summary", "namespace", "key", *INPUTS])
def test_decision_with_values_of_any_type_is_folded(part):
    values = [value for value in ODD if not isinstance(value, int) or abs(value) < 2**63]
    base = {"namespace": "default", "name": "p", "outcome": "Evicted"}
    fold_all(
        base
        | {"controller": name}
        | ({"inputs": {part: value}} if part in INPUTS else {part: value})
        for name in ("scheduling", "claims", "eviction", "rule-status", "node-lifecycle")
        for value in values
    )
