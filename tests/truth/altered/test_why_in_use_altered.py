"""`why` of pods and claims in use, in recordings whose lines were altered, says what they say.

Authors are renamed, and the one line is dropped that made a state so: then the answer names
nobody else as its author, and no other state as certain. Rows come by day.
"""

import random
from collections.abc import Iterator

import pytest

from app.analysis.explain.questions import ObjectExplanation
from tests import draws
from tests.adversary.catalogue import QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log, results_of
from tests.adversary.lossy import level
from tests.adversary.running import recording
from tests.truth.altered.asking import imported
from tests.truth.altered.in_use import differences, states_of
from tests.truth.altered.lines import is_write, key_of
from tests.truth.altered.recorded import until
from tests.truth.facts import FINISHED
from tests.truth.states.comparing import sentences

NODE = "system:node:"


def moments(name: str) -> list[int]:
    """The lines about pods and claims of a recording; a normal run draws among the first half."""
    numbers = [
        number
        for number, line in enumerate(recording(name).lines)
        if is_write(line) and line["objectRef"]["resource"] in ("pods", "resourceclaims")
    ]
    return numbers if draws.WHOLE else numbers[: len(numbers) // 2]


def drawn(name: str, seed: int) -> tuple[Log, str]:
    """A recording up to a drawn line, and the namespace that the line is about."""
    number = random.Random(f"{name} in use {seed}").choice(moments(name))
    return until(name, number), recording(name).lines[number]["objectRef"]["namespace"]


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(2))
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS, TPU])
async def test_pods_and_claims_in_use_are_explained_by_the_lines(name, seed, tmp_path):
    log, namespace = drawn(name, seed)
    asked = await imported(log, tmp_path)
    wrong = [one async for one in differences(asked, states_of(log, namespace), namespace)]
    assert wrong == []


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(2, first=50))
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS, TPU])
async def test_authors_of_other_names_are_named(name, seed, tmp_path):
    """All but kubelets have other names: who did it is whom the line names, and nobody else."""
    log, namespace = drawn(name, seed)
    log = log.copy()
    for line in log.lines:
        user = line["user"]["username"]
        if not user.startswith(NODE):
            line["user"]["username"] = f"x{user[::-1]}"
    states = states_of(log, namespace)
    asked = await imported(log, tmp_path)
    assert [one async for one in differences(asked, states, namespace)] == []


# One line is dropped: the positions of a line, and of the last one that is kept.


def lost_requests(name: str) -> Iterator[tuple[int, int]]:
    """The requests to delete a pod that its kubelet answers by a write of its status."""
    lines = recording(name).lines
    for number, line in enumerate(lines):
        meta = (line.get("responseObject") or {}).get("metadata") or {}
        is_request = line["verb"] == "delete" and line["objectRef"]["resource"] == "pods"
        if is_request and meta.get("deletionGracePeriodSeconds"):
            for later in range(number + 1, len(lines)):
                if is_write(lines[later]) and key_of(lines[later]) == key_of(line):
                    if lines[later]["verb"] == "patch":
                        yield number, later
                    break


def lost_allocations(name: str) -> Iterator[tuple[int, int]]:
    """The allocations of claims with one pod, up to the first line of that pod's kubelet."""
    lines = recording(name).lines
    for number, line in enumerate(lines):
        tree = line.get("responseObject") or {}
        is_of_claim = is_write(line) and line["objectRef"]["resource"] == "resourceclaims"
        if not is_of_claim or not results_of(tree):
            continue
        users = tree["status"].get("reservedFor") or ()
        if "kube-scheduler" not in line["user"]["username"] or len(users) != 1:
            continue
        for later in range(number + 1, len(lines)):
            if lines[later]["user"]["username"].startswith(NODE) and key_of(lines[later]) == (
                "pods", line["objectRef"]["namespace"], users[0]["name"]
            ):  # fmt: skip
                if lines[later]["responseObject"]["status"]["phase"] == "Running":
                    yield number, later
                break


def dropped(name: str, number: int, last: int) -> tuple[Log, Json]:
    """A recording up to a line, without one line, and that line."""
    line = recording(name).lines[number]
    return Log([one for one in until(name, last).lines if one is not line]), line


def chosen(candidates: Iterator[tuple[int, int]], title: str) -> tuple[int, int]:
    rows = [*candidates]
    return random.Random(title).choice(rows if draws.WHOLE else rows[:6])


def said(answer: ObjectExplanation) -> list[str]:
    return [answer.text, *sentences(answer.to_json()["reasons"])]


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(2))
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS])
async def test_nobody_is_named_for_a_deletion_whose_request_was_lost(name, seed, tmp_path):
    log, line = dropped(name, *chosen(lost_requests(name), f"{name} request {seed}"))
    assert log.lines[-1]["user"]["username"].startswith(NODE)
    answer = await (await imported(log, tmp_path)).why(*key_of(line))
    (asked,) = [one for one in said(answer) if one.startswith("deletion was asked for")]
    assert asked.startswith("deletion was asked for by an unrecorded user, before ")
    assert answer.to_json()["certainty"] == "unsure"


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(2))
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS])
async def test_pod_whose_allocation_was_lost_has_not_lost_its_claim(name, seed, tmp_path):
    number, last = chosen(lost_allocations(name), f"{name} allocation {seed}")
    log, line = dropped(name, number, last)
    asked = await imported(log, tmp_path)
    (_, namespace, claim), pod = key_of(line), key_of(log.lines[-1])[2]
    for kind, name_ in (("pod", pod), ("resourceclaim", claim)):
        answer = await asked.why(kind, namespace, name_)
        assert answer.to_json()["certainty"] == "unsure"
        assert not [one for one in said(answer) if "lost" in one or "does not exist" in one]
        assert [one for one in said(answer) if claim in one and "was recorded" in one]


@pytest.mark.parametrize(
    ("number", "last", "pod"), [(208, 223, "plain-1"), (360, 381, "r-0")], ids=["slice", "rule"]
)
async def test_eviction_whose_taint_was_lost_is_unsure(number, last, pod, tmp_path):
    """The line that brought a taint is lost: a slice's, which shows in no other, and a rule's."""
    log, line = dropped(TAINTS, number, last)
    answer = await (await imported(log, tmp_path)).why("pod", "taints", pod)
    assert answer.to_json()["certainty"] == "unsure"
    if line["objectRef"]["resource"] == "resourceslices":
        assert not [one for one in said(answer) if "tainted" in one]
        assert [one for one in said(answer) if one.startswith("the taint was not recorded")]
    else:
        assert [one for one in said(answer) if "tainted" in one and "by rule maintenance" in one]


async def test_taint_is_not_said_to_be_unrecorded_where_the_devices_are(tmp_path):
    """The allocation of a pod is lost that is evicted for a taint, which a slice shows."""
    log, line = dropped(TAINTS, 290, 297)
    answer = await (await imported(log, tmp_path)).why("pod", "taints", "late-12")
    assert results_of(line["responseObject"])
    assert "the devices that it had were not recorded, so the taint is not known" in said(answer)
    assert not [one for one in said(answer) if "DeviceTaintRule" in one]
    kinds = [one["kind"] for one in answer.to_json()["doubts"]]
    assert "resourceclaims.resource.k8s.io" in kinds


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(2))
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS])
async def test_pod_whose_deletion_was_answered_unseen_is_not_said_to_be_gone(name, seed, tmp_path):
    """Nothing tells at level Request whether a deletion has ended; the whole recording does.

    A later write of the kubelet does tell that it has not.
    """
    number, last = chosen(lost_requests(name), f"{name} level {seed}")
    for end, is_told in ((number, False), (last, True)):
        log = until(name, end).copy()
        key, tree = key_of(log.lines[-1]), log.lines[-1]["responseObject"]
        assert "deletionTimestamp" in tree["metadata"]
        phase = tree["status"]["phase"]
        level("Request", lambda line: True)(log)
        answer = await (await imported(log, tmp_path)).why(*key)
        assert answer.outcome == (phase if phase in FINISHED else "Terminating")
        assert ("whether it is gone was not recorded" in answer.text) is not is_told
        assert answer.to_json()["certainty"] == "unsure"


@draws.BY_DAY
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS])
async def test_pod_whose_deletion_has_no_body_may_be_gone(name, tmp_path):
    """All is recorded whole but the request to delete a pod, which is at level Metadata."""
    number, _ = chosen(lost_requests(name), f"{name} no body")
    log = until(name, number).copy()
    key = key_of(log.lines[-1])
    level("Metadata", lambda line: line is log.lines[-1])(log)
    answer = await (await imported(log, tmp_path)).why(*key)
    assert "whether it is gone was not recorded" in answer.text
    assert answer.to_json()["certainty"] == "unsure"
