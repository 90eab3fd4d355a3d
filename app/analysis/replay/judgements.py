"""The causes of the differences of each pod, derived from the judgements of differences."""

from collections.abc import Mapping

from app.analysis.replay.classes import UNPROVED, Judgement
from app.analysis.replay.differences import Aspect, DifferenceKey
from app.analysis.replay.traces import Trace

_FATES = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
_ABOUT_PODS = (*_FATES, Aspect.CONDITIONS, Aspect.SAID)
"""The aspects about pods, the most important first: outcomes before messages."""


def of_pods(
    judgements: Mapping[DifferenceKey, Judgement], recorded: Trace, again: Trace
) -> dict[str, Judgement]:
    """The judgement about each pod by its uid: that of its placement, or else of its messages.

    The judgement of a claim applies to its owner and to the pods that use it. If any outcome of a
    pod is unproved, so is the pod: the proof of one difference does not cover the others.
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
