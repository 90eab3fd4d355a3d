"""What runs have shown to be behind the differences of each pod, from what they show of objects."""

from collections.abc import Mapping

from app.analysis.replay.classes import UNPROVED, Judgement
from app.analysis.replay.differences import Aspect, DifferenceKey
from app.analysis.replay.traces import Trace

_FATES = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
_ABOUT_PODS = (*_FATES, Aspect.CONDITIONS, Aspect.SAID)
"""What makes a pod fare otherwise, first what weighs most: what becomes of it before words."""


def of_pods(
    judgements: Mapping[DifferenceKey, Judgement], recorded: Trace, again: Trace
) -> dict[str, Judgement]:
    """The judgement about each pod by its uid: that of its placement, or of what is said of it.

    What is known of a claim is known of its pod and of those that use it. Where anything that
    becomes of a pod is unproved, the pod is: what proves one difference says nothing of the others.
    """
    judged: dict[str, Judgement] = {}
    ordered = sorted(
        (key for key in judgements if key[0] in _ABOUT_PODS),
        key=lambda key: (
            key[0] not in _FATES,
            key[0] in _FATES and judgements[key].reason not in UNPROVED,
            _ABOUT_PODS.index(key[0]),
        ),
    )
    for key in ordered:
        for uid in _pods_of(key[1], recorded, again):
            judged.setdefault(uid, judgements[key])
    return judged


def _pods_of(uid: str, *traces: Trace) -> set[str]:
    """The pod itself, or the owner and the users of a claim."""
    pods = {uid}
    for trace in traces:
        pods |= trace.users.get(uid, set())
        owner = trace.owner_of.get(uid)
        if owner is not None:
            pods.add(owner)
    return pods
