"""Compares each attempt of a drawn world with the model: nodes, message, victims, nominations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from app.domain.log import Event
from app.domain.values import timestamps
from tests.truth import raw
from tests.truth.preemption.model import Candidate, Outcome, Preempting, is_evicted, priority
from tests.truth.preemption.worlds import PreemptionWorld
from tests.truth.raw import State
from tests.truth.waiting.judging import changes_of

SHOWN_MAX = 8
"""The victims that a decision names."""


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt for a pod: its decision, the state that it saw, and the one after its writes."""

    pod: str
    event: Event
    body: dict
    before: State
    after: State
    counted: Outcome

    @property
    def chosen(self) -> Candidate | None:
        """Of the candidates that are best by the model, the one that was chosen."""
        node = (self.body["summary"].get("preemption") or {}).get("node")
        return next((one for one in self.counted.best if one.node == node), None)


def attempts_of(world: PreemptionWorld) -> Iterator[Tried]:
    """All attempts for pods, each with what the model counts."""
    events = world.cluster.line.events
    history = raw.RawHistory(changes_of(world.cluster))
    for number, event in enumerate(events):
        if not _is_attempt(event):
            continue
        last = event.revision
        for one in events[number + 1 :]:
            if one.type == "DecisionRecorded" or one.stamp.observed != event.stamp.observed:
                break
            last = one.revision
        body = event.object
        pod = f"{body['namespace']}/{body['name']}"
        # Attempts of one step see what those before them do.
        before = history.at(event.revision - 1)
        now = datetime.fromisoformat(timestamps.micro_text(event.stamp.time))
        counted = Preempting(before, pod, now).outcome()
        yield Tried(pod, event, body, before, history.at(last), counted)


def _is_attempt(event: Event) -> bool:
    """Whether it is the decision about one pod, not the record of attempts that changed nothing."""
    return (
        event.type == "DecisionRecorded"
        and event.object["controller"] == "scheduling"
        and event.object["outcome"] != "Skipped"
        and bool(event.object["name"])
    )


def world_differences(seed: int) -> list[str]:
    """The differences between one world and the model."""
    return [
        f"revision {one.event.revision}, pod {one.pod}: {difference}"
        for one in attempts_of(PreemptionWorld(seed))
        if one.counted.is_known
        for difference in differences(one)
    ]


def differences(tried: Tried) -> Iterator[str]:
    """One line for each statement or write of an attempt that is not as counted."""
    counted, outcome = tried.counted, tried.body["outcome"]
    summary = tried.body["summary"]
    if counted.nodes:
        if outcome != "Scheduled" or summary["node"] not in counted.nodes:
            yield f"{outcome} {summary}, counted {counted.nodes}"
        return
    if outcome != "Unschedulable":
        yield f"{outcome} {summary}, counted {counted}"
        return
    yield from _message(summary["message"], counted, sum(key[0] == "nodes" for key in tried.before))
    if counted.candidates:
        yield from _victims(tried, summary.get("preemption") or {})
    else:
        yield from _nobody(tried, summary.get("preemption"))


def _message(said: str, counted: Outcome, nodes: int) -> Iterator[str]:
    parts = sorted(f"{number} {reason}" for reason, number in counted.refusals.items())
    head = f"0/{nodes} nodes are available: {', '.join(parts)}."
    if parts and not said.startswith(head):
        yield f"said {said!r}, counted {head!r}"
    texts = [
        f"preemption: found a potential placement for pod on node {one.node}, "
        f"preempting {len(one.victims)} victims"
        for one in counted.best
    ] or [counted.text]
    if not any(said.endswith(text) for text in texts):
        yield f"said {said!r}, counted {texts}"


def _nobody(tried: Tried, said: dict | None) -> Iterator[str]:
    """Nobody goes; the pod keeps its nomination where it may not evict anybody now."""
    own = tried.before["pods", *tried.pod.split("/")]
    expected = nominated(own) if "not eligible" in tried.counted.text else ""
    wrote = _written(tried)
    if said or wrote != (set(), expected, set()):
        yield f"said {said}, wrote {wrote}, counted nobody, nominated {expected!r}"


def _victims(tried: Tried, said: dict) -> Iterator[str]:
    """The victims that are named, the writes about them, and whose node is kept."""
    chosen = tried.chosen
    if chosen is None:
        yield f"evicted {said}, counted {tried.counted.best}"
        return
    count = len(tried.counted.candidates)
    whole = (list(chosen.victims[:SHOWN_MAX]), len(chosen.victims), chosen.violations, count)
    shown = tuple(said[one] for one in ("victims", "victimsCount", "violations", "candidates"))
    if shown != whole:
        yield f"said {shown}, counted {whole}"
    expected = (fresh(tried, chosen), chosen.node, _displaced(tried, chosen))
    if _written(tried) != expected:
        yield f"wrote {_written(tried)}, counted {expected}"


def fresh(tried: Tried, chosen: Candidate) -> set[str]:
    """The victims that did not end before they were chosen."""
    return {
        name
        for name in chosen.victims
        if "deletionTimestamp" not in tried.before["pods", *name.split("/")]["metadata"]
    }


def _displaced(tried: Tried, chosen: Candidate) -> set[str]:
    """The weaker pods that wait for the node, which is no longer theirs."""
    own = tried.before["pods", *tried.pod.split("/")]
    return {
        name
        for name, tree in _pods(tried.before)
        if name != tried.pod
        and nominated(tree) == chosen.node
        and not tree["spec"].get("nodeName")
        and priority(tree) < priority(own)
    }


def _written(tried: Tried) -> tuple[set[str], str, set[str]]:
    """Who was evicted, the node that is kept for the pod, and who lost a nomination."""
    before, after = dict(_pods(tried.before)), dict(_pods(tried.after))
    evicted = {
        name
        for name, tree in before.items()
        # A pod without a grace period is gone at once.
        if name not in after or (is_evicted(after[name]) and not is_evicted(tree))
    }
    displaced = {
        name
        for name, tree in after.items()
        if name != tried.pod and name in before and nominated(before[name]) != nominated(tree)
    }
    return evicted, nominated(after[tried.pod]), displaced


def _pods(state: State) -> Iterator[tuple[str, dict]]:
    return (("/".join(key[1:]), tree) for key, tree in state.items() if key[0] == "pods")


def nominated(pod: dict) -> str:
    """The node that is kept for a pod."""
    return (pod.get("status") or {}).get("nominatedNodeName") or ""
