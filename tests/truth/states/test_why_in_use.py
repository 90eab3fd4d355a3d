"""`why` of pods and claims in use says what the model counts: state, cause, author, time, holder.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

import copy
from collections import Counter

import pytest

from app.domain.objects.profile import Profile
from tests import draws
from tests.cluster import Cluster
from tests.truth.facts import FINISHED
from tests.truth.states import comparing
from tests.truth.states.judging import states_of, text_of, world_differences
from tests.truth.states.model import EVICTED
from tests.truth.states.worlds import LivedWorld
from tests.unit.service.test_explaining import asking, texts

MET = {
    "Scheduled", "Terminating", "Succeeded", "Failed", "Allocated", "Pending",
    "forced", "shortened", "kept", "evicted", "planned", "in use", "elsewhere kept",
    "effect", "forever", "until", "at once", "vague",
    "cannot start", "has not started", "has lost", "not published", "is gone", "never had",
    "confirm", "finalizers keep",
}  # fmt: skip
"""States, causes and ways to tolerate that the model can count."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(21))
async def test_why_says_the_states_of_pods_and_claims(first):
    for seed in range(first * 3, first * 3 + 3):
        assert await world_differences(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [3, 9])
async def test_states_that_showed_a_defect(seed):
    """A rule for devices that no slice publishes, and a pod that ended while it terminated."""
    assert await world_differences(seed) == []


async def test_rule_that_the_scheduler_does_not_see_is_the_cause_of_its_eviction():
    cluster = Cluster(Profile(rules_unseen=True))
    cluster.node()
    cluster.slice(devices=1)
    cluster.device_class()
    cluster.template()
    cluster.pod("p", template="gpu")
    cluster.settle()
    cluster.rule("bad", "NoExecute")
    async with asking(cluster.settle()) as ask:
        answers = [await ask("pod", "p"), await ask("resourceclaim", cluster.claim_of("p"))]
    evicted, held = (" ".join(texts(answer.reason)) for answer in answers)
    assert "tainted example.com/bad:NoExecute by rule bad" in evicted
    assert "is tainted example.com/bad:NoExecute by rule bad: not tolerated" in held


@draws.ONLY
def test_the_worlds_have_each_state():
    met: Counter = Counter()
    for seed in range(250):
        count(met, states_of(LivedWorld(seed)))
    assert {one for one in MET if not met[one]} == set()


def count(met, states):
    for place, pod in states.facts.pods.items():
        name = place.removeprefix("default/")
        if not comparing.is_judged(states, name):
            continue
        outcome, words = states.pod(name)
        met[outcome] += 1
        met.update(one for one in MET if one in words)
        deletion = list(states.deletion(("pods", "default", name)))
        is_placed = "nodeName" in pod["spec"] and pod["status"].get("phase") not in FINISHED
        met["forced"] += is_placed and bool(deletion) and "grace" not in deletion[0]
        met["shortened"] += len(deletion) > 1
        met["kept"] += bool(deletion) and bool(pod["metadata"].get("finalizers"))
        met["evicted"] += EVICTED in str(pod["status"].get("conditions"))
        met["planned"] += not deletion and states.evicting(name) is not None
    for place, claim in states.facts.claims.items():
        met[states.claim(place)[0]] += 1
        if "deletionTimestamp" in claim["metadata"]:
            met["in use"] += bool(claim["status"].get("reservedFor"))
            met["elsewhere kept"] += "example.com/keep" in claim["metadata"]["finalizers"]
        met.update(threat.how for threat in states.threats(states.facts, claim))


WORDS = (
    ("carol", "mallory"), ("system:", "sistem:"), ("rule ", "rule x"), ("tolerated", "endured"),
    ("evicted", "left"), ("grace", "time"), ("2026-01-02T03:0", "2026-01-02T04:0"),
    ("claim ", "claim x"), ("ended", "failed"),
)  # fmt: skip
"""Words of sentences that are judged, and others that are not true."""


def altered(tree, old, new):
    other = copy.deepcopy(tree)
    other["text"] = other["text"].replace(old, new)
    other["children"] = [altered(child, old, new) for child in tree.get("children", ())]
    return other


async def test_answer_that_is_altered_is_noticed():
    states = states_of(world := LivedWorld(3))
    noticed: Counter = Counter()
    async with asking(world.cluster) as ask:
        for place in states.facts.pods:
            name = place.removeprefix("default/")
            if not comparing.is_judged(states, name):
                continue
            answer = await ask("pod", name)
            body = answer.to_json()
            for old, new in WORDS:
                other = {**body, "reasons": altered(body["reasons"], old, new)}
                told = comparing.of_pod(states, name, other, text_of(answer))
                noticed[old] += any(True for _ in told)
            for key, value in (("outcome", "Scheduling"), ("text", "is somewhere")):
                assert any(comparing.of_pod(states, name, {**body, key: value}, text_of(answer))), (
                    key
                )
    assert [old for old, _ in WORDS if not noticed[old]] == []
