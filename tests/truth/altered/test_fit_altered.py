"""`fit` about altered recordings counts copies on the devices that the altered lines leave free.

Copies of the pod that waits are asked for. Where each copy takes whole devices of one node for
itself, their number is counted; elsewhere a node takes copies only if the lines say that it takes
the pod. A refusal has the words and the numbers of the nodes' own refusals. Rows come by day.
"""

from collections import Counter

import pytest

from tests import draws
from tests.adversary.catalogue import MIG, QUICKSTART, TAINTS
from tests.adversary.log import Json, Log
from tests.adversary.lossy import level
from tests.adversary.running import recording
from tests.truth.altered.alterations import modelled
from tests.truth.altered.drawing import ROWS, altered
from tests.truth.altered.model import RecordedModel
from tests.truth.altered.recorded import until
from tests.truth.altered.served import BELOW, Served, served
from tests.truth.altered.test_answers_blind import KINDS, MOMENTS
from tests.truth.altered.test_why_blind import GROUPED, without
from tests.truth.facts import needs
from tests.truth.waiting.model import wishes

CASES = [(title, name) for title, names in ROWS.items() for name in names]
OF_A_COPY = ("containers", "resourceClaims", "nodeSelector", "tolerations", "affinity")


def copy_of(model: RecordedModel) -> Json:
    """A pod like the one that waits, as somebody would write it."""
    spec = {name: model.pod["spec"][name] for name in OF_A_COPY if name in model.pod["spec"]}
    metadata = {"name": "copy", "namespace": model.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def asked(history: Served, model: RecordedModel) -> Json:
    place = f"{BELOW}/fit?at={history.revision}"
    answer: Json = await history.server.post(place, {"objects": [copy_of(model)]}, code=200)
    return answer


def takers(model: RecordedModel) -> set[str]:
    return {node for node in model.nodes if not model.verdict(node).text}


def counted(model: RecordedModel) -> dict[str, int] | None:
    """The copies on each node; None where devices are shared, or drawn from counters."""
    entries = model.pod["spec"].get("resourceClaims") or ()
    if len(entries) != 1 or "resourceClaimTemplateName" not in entries[0]:
        return None
    (claim,) = model.claims
    ((wish,),) = wishes(claim)
    copies = {}
    for node in takers(model):
        free = model.alone(claim, wish, node)
        is_plain = not any(needs(one) or one.tree.get("allowMultipleAllocations") for one in free)
        if not is_plain or any(one.spec.get("nodeName") != node for one in free):
            return None
        copies[node] = len(free) // wish.count
    return copies


def meets_errors(model: RecordedModel) -> bool:
    """Whether a selector fails for a device: it depends on the search whether it gets there."""
    return any(
        model.selected(wish, device, node) == "selector-error"
        for wish in model.wished()
        for node in model.nodes
        for device in model.devices(node)
    )


def differences(model: RecordedModel, answer: Json) -> list[str]:
    (fit,) = answer["items"]
    said = {one["node"]: one["count"] for one in fit["nodes"]}
    wrong = []
    exactly = counted(model)
    if exactly is not None and said != exactly:
        wrong.append(f"said {said}, counted {exactly}")
    if bool(said) != bool(takers(model)) or fit["count"] != sum(said.values()):
        wrong.append(f"said {fit['count']} on {said}, taken by {takers(model)}")
    verdicts = [model.verdict(node) for node in model.nodes]
    if not said and not any(one.error for one in verdicts):
        parts = sorted(f"{count} {text}" for text, count in Counter(
            one.text for one in verdicts).items())  # fmt: skip
        text = f"0/{len(verdicts)} nodes are available: {', '.join(parts)}."
        texts = (text, 'running "DynamicResources"') if meets_errors(model) else text
        if not fit["limit"]["text"].startswith(texts):
            wrong.append(f"said {fit['limit']['text']}, counted {text}")
    return wrong


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(1))
@pytest.mark.parametrize(("title", "name"), CASES)
async def test_copies_fit_on_what_the_altered_lines_leave_free(title, name, seed, tmp_path):
    log, _, model, _ = altered(name, title, seed)
    async with served(log, tmp_path) as history:
        answer = await asked(history, model)
    assert differences(model, answer) == []


@draws.BY_DAY
@pytest.mark.parametrize(
    ("title", "name"), [("without_rule", TAINTS), ("freed", MIG), ("with_node", TAINTS)]
)
async def test_answer_about_the_unaltered_recording_is_noticed(title, name, tmp_path):
    """The comparison with the altered lines is not blind to what the alteration changes."""
    _, line, model, _ = altered(name, title, 0)
    unaltered = until(name, recording(name).lines.index(line))
    async with served(unaltered, tmp_path) as history:
        answer = await asked(history, model)
    assert differences(model, answer)


def waiting(log: Log) -> RecordedModel:
    """The pod of the last line."""
    return modelled(log, "{namespace}/{name}".format(**log.lines[-1]["objectRef"]))


@draws.BY_DAY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MOMENTS)
async def test_copies_on_a_recording_without_a_kind_are_unsure(name, kind, tmp_path):
    whole = until(name, MOMENTS[name])
    async with served(without(whole, kind), tmp_path) as history:
        answer = await asked(history, waiting(whole))
    kinds = {one["kind"] for one in answer["doubts"] if one["affects"] == "content"}
    assert answer["certainty"] == "unsure"
    assert GROUPED[kind] in kinds


@pytest.mark.parametrize("name", [QUICKSTART, TAINTS])
async def test_copies_on_a_whole_recording_are_sure(name, tmp_path):
    whole = until(name, MOMENTS[name])
    async with served(whole, tmp_path) as history:
        assert (await asked(history, waiting(whole)))["certainty"] == "sure"


async def test_devices_that_unrecorded_rules_may_taint_are_unsure(tmp_path):
    """Only an eviction tells of the rules. Copies, blasts, capacity and devices rest on taints."""
    whole = until(TAINTS, MOMENTS[TAINTS])
    model = waiting(whole)
    async with served(without(whole, "devicetaintrules"), tmp_path) as history:
        answers = {
            "fit": await asked(history, model),
            "blast": await history.propose({"cordon": [model.nodes[0]]}),
            "capacity": await history.ask("capacity"),
            "why": await history.ask("why", kind="device", name="gpu.example.com/worker-1/gpu-0"),
        }
    for question, answer in answers.items():
        assert answer["certainty"] == "unsure", question
        texts = [one["text"] for one in answer["doubts"]]
        assert [one for one in texts if "is evicted for a taint" in one], question


@draws.BY_DAY
@pytest.mark.parametrize("to", ["Request", "Metadata"])
@pytest.mark.parametrize("name", MOMENTS)
async def test_copies_on_a_recording_without_bodies_are_unsure(name, to, tmp_path):
    whole = until(name, MOMENTS[name])
    log = whole.copy()
    level(to, lambda line: line["objectRef"]["resource"] != "resourceclaimtemplates")(log)
    async with served(log, tmp_path) as history:
        answer = await asked(history, waiting(whole))
    assert answer["certainty"] == "unsure"
