"""`why` about recordings that lack a kind names what it lacks, and denies nothing that was there.

That the objects were there is read from the lines of the whole recording. The verdict that each
pod must get stands beside it; what nobody recorded is never said not to exist.
"""

import re
from collections.abc import Iterator

import pytest

from app.domain.errors import NotFound
from tests import draws
from tests.adversary.catalogue import QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log
from tests.adversary.lossy import level
from tests.truth.altered.asking import imported, page_of
from tests.truth.altered.recorded import until
from tests.truth.states.comparing import sentences

GROUPED = {
    "nodes": "nodes",
    "pods": "pods",
    **{
        name: f"{name}.resource.k8s.io"
        for name in ("resourceslices", "deviceclasses", "resourceclaims", "devicetaintrules")
    },
}
"""The kinds of which a recording may be blind, as doubts name them."""

DENIAL = re.compile(r"does not exist|could not find|is published|is gone|never had|there is no")
"""The words in which an answer denies an object."""

WAITING = [
    (QUICKSTART, 295, "basic-resourceclaimtemplate/too-many"),
    (TAINTS, 429, "taints/blocked"),
    (TPU, 240, "tpu/small-0"),
]
"""Pods that a node has refused: all kinds but rules take part in that."""

IN_USE = [
    (QUICKSTART, 196, "basic-resourceclaimtemplate/pod0"),
    (TAINTS, 381, "taints/r-0"),
]
"""Pods that are ending, on a node, the second one for a rule."""


def without(log: Log, kind: str) -> Log:
    """The lines of a log that are not about a kind."""
    blind = Log([line for line in log.lines if line["objectRef"]["resource"] != kind])
    assert len(blind.lines) < len(log.lines)
    return blind


def own_words(body: Json) -> Iterator[str]:
    """The sentences of an answer, and its head, without those that it cites."""
    yield body["text"]
    for one in sentences(body["reasons"]):
        if not one.startswith(("the recorded scheduler said", "DeletionBy")):
            yield one


async def asked(log: Log, pod: str, folder) -> Json:
    asked = await imported(log, folder)
    answer = await asked.why("pod", *pod.split("/"))
    assert page_of(answer)
    return answer.to_json()


def kinds_of(body: Json) -> set[str]:
    return {one["kind"] for one in body["doubts"] if one["affects"] == "content"}


def denials(body: Json) -> list[str]:
    return [one for one in own_words(body) if DENIAL.search(one)]


@draws.BY_DAY
@pytest.mark.parametrize("kind", ["resourceslices", "deviceclasses", "resourceclaims", "nodes"])
@pytest.mark.parametrize(("name", "number", "pod"), WAITING)
async def test_kind_that_a_waiting_pod_needs_is_named_as_not_recorded(
    name, number, pod, kind, tmp_path
):
    whole = until(name, number)
    body = await asked(without(whole, kind), pod, tmp_path)
    assert body["certainty"] == "unsure"
    assert GROUPED[kind] in kinds_of(body)
    assert denials(body) == []
    noun = {"resourceslices": "ResourceSlice", "deviceclasses": "DeviceClass",
            "resourceclaims": "ResourceClaim", "nodes": "node"}[kind]  # fmt: skip
    assert re.search(rf"\b{noun}\b.* was (not )?recorded", body["text"]), body["text"]
    assert body["text"].startswith("refused by the recorded scheduler; ")
    conditions = whole.lines[-1]["responseObject"]["status"]["conditions"]
    assert body["recorded"]["message"] in [one.get("message") for one in conditions]
    assert body["recorded"]["agrees"] is None


@draws.BY_DAY
@pytest.mark.parametrize("kind", ["resourceslices", "deviceclasses", "resourceclaims", "nodes"])
@pytest.mark.parametrize(("name", "number", "pod"), IN_USE)
async def test_kind_that_a_pod_in_use_rests_on_is_doubted_and_not_denied(
    name, number, pod, kind, tmp_path
):
    body = await asked(without(until(name, number), kind), pod, tmp_path)
    assert body["certainty"] == "unsure"
    assert GROUPED[kind] in kinds_of(body)
    assert denials(body) == []
    assert body["outcome"] == "Terminating"


async def test_claim_of_a_bound_pod_that_nobody_recorded_is_not_denied(tmp_path):
    """Bound and not started: that its claim is unknown is no reason why it does not start."""
    log = without(until(QUICKSTART, 112), "resourceclaims")
    body = await asked(log, "basic-resourceclaimtemplate/pod0", tmp_path)
    assert denials(body) == []
    assert [one for one in own_words(body) if "cannot start" in one or "refuses" in one] == []
    assert GROUPED["resourceclaims"] in kinds_of(body)


@pytest.mark.parametrize(("name", "number", "pod"), [WAITING[1], IN_USE[1]])
async def test_rule_that_nobody_recorded_is_missed_where_its_effect_is_recorded(
    name, number, pod, tmp_path
):
    """A pod is refused, another is evicted, and no object that is left shows the taint."""
    body = await asked(without(until(name, number), "devicetaintrules"), pod, tmp_path)
    assert body["certainty"] == "unsure"
    assert GROUPED["devicetaintrules"] in kinds_of(body)
    assert [one for one in own_words(body) if "DeviceTaintRule" in one and "recorded" in one]


@draws.BY_DAY
@pytest.mark.parametrize(("name", "number", "pod"), [WAITING[0], WAITING[2], IN_USE[0]])
async def test_rules_that_nobody_recorded_are_not_missed_where_nothing_shows_any(
    name, number, pod, tmp_path
):
    log = until(name, number)
    assert not any(line["objectRef"]["resource"] == "devicetaintrules" for line in log.lines)
    body = await asked(log, pod, tmp_path)
    assert body["certainty"] == "sure"
    assert "DeviceTaintRule" not in str(body)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "number", "pod"), [*WAITING, *IN_USE])
async def test_pod_of_a_recording_without_pods_is_not_said_not_to_be(name, number, pod, tmp_path):
    with pytest.raises(NotFound, match=r"unsure: .*; pods: none was recorded"):
        await asked(without(until(name, number), "pods"), pod, tmp_path)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "number", "pod"), WAITING)
async def test_claim_without_a_recorded_name_is_not_said_not_to_be(name, number, pod, tmp_path):
    """At level Request a generated name shows in no line about the claim."""
    log = until(name, number).copy()
    level("Request", lambda line: True)(log)
    body = await asked(log, pod, tmp_path)
    assert body["certainty"] == "unsure"
    assert denials(body) == []


async def test_error_of_the_recorded_attempt_is_the_one_that_a_node_gives_again(tmp_path):
    """An error on one node ends the attempt, so the others do not show in its message (C16)."""
    log = until(QUICKSTART, 293)
    body = await asked(log, "basic-resourceclaimtemplate/cel-error", tmp_path)
    assert (
        "noSuchAttribute" in log.lines[-1]["responseObject"]["status"]["conditions"][0]["message"]
    )
    assert body["recorded"]["agrees"] is True
    assert not any("is not known" in one for one in own_words(body))


async def test_class_that_is_missing_in_a_whole_recording_does_not_exist(tmp_path):
    body = await asked(until(QUICKSTART, 291), "basic-resourceclaimtemplate/no-class", tmp_path)
    assert body["certainty"] == "sure"
    assert body["text"] == "request gpu: device class no-such-class does not exist"
