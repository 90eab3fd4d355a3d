"""`why` of pods that wait in altered recordings says what the altered lines say, and nothing else.

Each alteration states beforehand which causes it takes or gives; the model of the altered lines
holds that, and every fact of the answer is compared with it. Rows come by day.
"""

import json
import random

import pytest

from tests import draws
from tests.adversary.catalogue import MIG, QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log, NotFound
from tests.adversary.running import recording
from tests.truth.altered.alterations import ALTERATIONS, modelled
from tests.truth.altered.asking import imported, page_of
from tests.truth.altered.model import RecordedModel
from tests.truth.altered.recorded import condition_of, refusals, until
from tests.truth.waiting import comparing

ROWS = {
    "without_rule": (TAINTS,),
    "freed": (QUICKSTART, TAINTS, MIG),
    "raised": (TPU, MIG),
    "without_attributes": (MIG,),
    "without_labels": (TPU,),
    "opened": (TAINTS,),
    "other_driver": (QUICKSTART, TAINTS, MIG, TPU),
    "with_node": (TAINTS, MIG),
}
"""The recordings in which an alteration changes what keeps pods waiting."""


EARLY = 16
"""Refusals of a recording among which a normal run draws: the longer the log, the more work."""


def altered(name: str, title: str, seed: int) -> tuple[Log, Json, RecordedModel, set[str]]:
    """A recording up to a drawn refusal, altered; one in which the alteration changes something."""
    moments = refusals(name)
    moments = moments if draws.WHOLE else moments[:EARLY]
    for number in random.Random(f"{name} {title} {seed}").sample(moments, len(moments)):
        unaltered = until(name, number)
        line = recording(name).lines[number]
        pod = "{namespace}/{name}".format(**line["objectRef"])
        before = modelled(unaltered, pod)
        if before.state != "waiting" or reserves_nodes(before):
            continue
        log = unaltered.copy()
        try:
            model, gone = ALTERATIONS[title].made(before, log, pod)
        except NotFound:
            continue
        return log, line, model, gone
    raise AssertionError(f"{title} changes nothing in {name}")


def reserves_nodes(model: RecordedModel) -> bool:
    """Whether another pod is about to be bound: its node is kept for it, unseen by the model."""
    return any(
        (pod.get("status") or {}).get("nominatedNodeName") and not pod["spec"].get("nodeName")
        for pod in model.facts.pods.values()
    )


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(1))
@pytest.mark.parametrize(
    ("title", "name"), [(title, name) for title, names in ROWS.items() for name in names]
)
async def test_waiting_pod_is_explained_by_the_altered_lines(title, name, seed, tmp_path):
    log, line, model, gone = altered(name, title, seed)
    about = line["objectRef"]
    asked = await imported(log, tmp_path)
    answer = await asked.why("pod", about["namespace"], about["name"])
    body = answer.to_json()
    assert list(comparing.differences(model, body, page_of(answer))) == []
    said = json.dumps(body)
    assert [one for one in gone if one in said] == []
    assert body["recorded"]["message"] == condition_of(line)


@draws.BY_DAY
@pytest.mark.parametrize("title", ROWS)
async def test_answer_about_the_unaltered_recording_is_noticed(title, tmp_path):
    """The comparison with the altered lines is not blind to what the alteration changes."""
    name = ROWS[title][0]
    _, line, model, _ = altered(name, title, 0)
    about = line["objectRef"]
    asked = await imported(until(name, recording(name).lines.index(line)), tmp_path)
    answer = await asked.why("pod", about["namespace"], about["name"])
    assert list(comparing.differences(model, answer.to_json(), page_of(answer)))
