"""Draws a refusal of a recording at which an alteration changes what keeps the pod waiting."""

import random

from tests import draws
from tests.adversary.catalogue import MIG, QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log, NotFound
from tests.adversary.running import recording
from tests.truth.altered.alterations import ALTERATIONS, modelled
from tests.truth.altered.model import RecordedModel
from tests.truth.altered.recorded import refusals, until

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
