"""Compares what `why` says of pods and claims in use with what the model counts."""

import re
from collections.abc import Iterator

from tests.truth.facts import FINISHED
from tests.truth.states.model import EVICTED, PROTECTION, States, Threat, text_of

HOW = {
    "effect": "nobody is evicted, the effect is",
    "forever": "tolerated for ever by",
    "until": "tolerated until",
    "at once": "not tolerated, so its pods are evicted",
    "vague": "has no effect, which does not keep from eviction",
}
"""The words of a sentence about a taint, for each way in which it is or is not tolerated."""


def sentences(reason: dict) -> Iterator[str]:
    """All sentences of a tree of reasons."""
    yield reason["text"]
    for child in reason.get("children", ()):
        yield from sentences(child)


def is_judged(states: States, name: str) -> bool:
    """Whether a pod has a node, has ended or is being deleted; those that wait are not judged."""
    return bool(states.pod(name)[1])


def of_pod(states: States, name: str, answer: dict, page: str) -> Iterator[str]:
    """The differences of an answer about a pod; `page` is it as text."""
    pod = states.facts.pods[f"default/{name}"]
    outcome, words = states.pod(name)
    if answer["outcome"] != outcome or words not in answer["text"].replace("claims ", "").replace(
        "claim ", ""
    ):
        yield f"said {answer['outcome']}, {answer['text']!r}, counted {outcome}, {words!r}"
    said = list(sentences(answer["reasons"]))
    key = ("pods", "default", name)
    phase = (pod.get("status") or {}).get("phase")
    wanted = list(states.deletion(key))
    yield from _deleted(wanted, said)
    if wanted:
        for finalizer in pod["metadata"].get("finalizers") or ():
            wanted.append(f"finalizer {finalizer} keeps it")
    if phase in FINISHED:
        since = states.since(key, lambda tree: tree["status"].get("phase") in FINISHED)
        wanted.append(f"ended as {phase}" + ("" if since is None else f", by {since.user}"))
    wanted += _marked(states, name)
    if pod["spec"].get("nodeName"):
        for claim, _ in states.reserved(pod):
            wanted.append(f"claim {claim}")
        if "deletionTimestamp" not in pod["metadata"]:
            yield from _planned(states, name, said)
        wanted_threats = [
            threat
            for _, claim in states.reserved(pod)
            for threat in states.threats(states.facts, claim)
        ]
        yield from _taints(wanted_threats, said)
    yield from _shown(wanted, said, page)


def of_claim(states: States, name: str, answer: dict, page: str) -> Iterator[str]:
    """The differences of an answer about a claim."""
    claim = states.facts.claims[name]
    outcome, text = states.claim(name)
    if (answer["outcome"], answer["text"]) != (outcome, text):
        yield f"said {answer['outcome']}, {answer['text']!r}, counted {outcome}, {text!r}"
    deletion = list(states.deletion(("resourceclaims", *name.split("/"))))
    wanted = [*deletion]
    said = list(sentences(answer["reasons"]))
    users = [one["name"] for one in (claim.get("status") or {}).get("reservedFor") or ()]
    if wanted:
        for finalizer in claim["metadata"].get("finalizers") or ():
            if finalizer == PROTECTION and users:
                ends = "ends" if len(users) == 1 else "end"
                wanted.append(f"finalizer {finalizer} keeps it until {', '.join(users)} {ends}")
            else:
                wanted.append(f"finalizer {finalizer} keeps it")
    is_allocated = "allocation" in (claim.get("status") or {})
    if is_allocated:
        yield from _deleted(deletion, said)
        yield from _taints(list(states.threats(states.facts, claim)), said)
    consumers = list(states.consumers(name))
    wanted += consumers
    told = [one for one in said if re.match(r"pod \S+, .*; reserved", one)]
    if is_allocated and len(told) != len(consumers):
        yield f"said consumers {told}, counted {consumers}"
    naming = states.facts.pods_of(name)
    unused = "no pod uses the claim, so no devices are requested"
    owner = claim["metadata"].get("ownerReferences")
    if not is_allocated and not owner and (unused in said) != (not naming):
        yield f"{unused if unused in said else 'a pod uses it'}, counted {naming}"
    yield from _shown(wanted, said, page)


def _deleted(wanted: list[str], said: list[str]) -> Iterator[str]:
    """No deletion and no shorter grace is said but those that were."""
    told = [one for one in said if re.match("deletion was asked|the grace period became", one)]
    if len(told) != len(wanted):
        yield f"said {told}, counted {wanted}"


def _shown(wanted: list[str], said: list[str], page: str) -> Iterator[str]:
    """Each sentence is said, and stands on the page."""
    for one in wanted:
        if not any(each.startswith(one) for each in said):
            yield f"nothing of {one!r} in {said}"
        elif one not in page and "more; -o json" not in page:
            yield f"{one!r} is not on the page"


def _marked(states: States, name: str) -> Iterator[str]:
    """What evicted a pod, from the objects just before it was marked."""
    key = ("pods", "default", name)

    def is_marked(tree: dict) -> bool:
        return any(
            one["type"] == "DisruptionTarget" and one.get("reason") == EVICTED
            for one in (tree.get("status") or {}).get("conditions") or ()
        )

    since = states.since(key, is_marked)
    if since is None:
        return
    yield EVICTED
    before = states.before(since.revision)
    uid = states.facts.pods[f"default/{name}"]["metadata"]["uid"]
    for place, claim in before.claims.items():
        users = (claim.get("status") or {}).get("reservedFor") or ()
        if any(one["uid"] == uid for one in users):
            for threat in states.threats(before, claim, with_all=False):
                yield (
                    f"claim {place.removeprefix('default/')} has {threat.device}, "
                    f"tainted {threat.taint} by {threat.source}"
                )


def _planned(states: States, name: str, said: list[str]) -> Iterator[str]:
    """When a pod that is not being deleted is to be evicted, and by what."""
    planned = states.evicting(name)
    told = next((one for one in said if one.startswith("is to be evicted at ")), "")
    if (planned is None) != (not told):
        yield f"said {told!r}, counted {planned}"
    if planned is None or not told:
        return
    due, sources = planned
    if text_of(due) not in told:
        yield f"said {told!r}, counted {due}"
    if not all(one in told for one in sources) and " more" not in told:
        yield f"said {told!r}, counted {sources}"


def _taints(threats: list[Threat], said: list[str]) -> Iterator[str]:
    """The taints on devices are those that are, with how each is tolerated."""
    pattern = re.compile(r"(\S+) is tainted (\S+) by (rule \S+|the driver, slice \S+): (.*)")
    matches = [one for text in said if (one := pattern.match(text))]
    told = {(one[1], one[2], one[3]): one[4] for one in matches}
    counted = {(one.device, one.taint, one.source): one for one in threats}
    if set(told) != set(counted):
        yield f"taints {sorted(told)}, counted {sorted(counted)}"
        return
    for place, threat in counted.items():
        if HOW[threat.how] not in told[place]:
            yield f"{place}: said {told[place]!r}, counted {threat.how}"
        elif threat.how == "until" and text_of(threat.due) not in told[place]:
            yield f"{place}: said {told[place]!r}, counted {threat.due}"
