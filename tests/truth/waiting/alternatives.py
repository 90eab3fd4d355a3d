"""Compares which alternatives of prioritized lists pods got with what trying everything gives.

On its node each request has the first alternative with which the later ones can be satisfied beside
the devices that the earlier ones have. Of nodes on which nothing else differs a pod with one list
is on one with its best alternative, and `why` of its claim names the nodes that had a better one.
Which devices a request has decides about the lists behind it, so those are not compared among
nodes. Parity: allocator.md 6; controllers.md 3.6 and 4.5.
"""

import re
from collections.abc import Iterator

from tests.truth import raw
from tests.truth.facts import FINISHED, Facts, device_of, results
from tests.truth.waiting.judging import changes_of
from tests.truth.waiting.model import Model, Taken, wishes
from tests.truth.waiting.prioritized import PrioritizedWorld
from tests.truth.waiting.worlds import SmallWorld
from tests.unit.service.test_explaining import asking, texts

_ELSEWHERE = re.compile(r"alternative (\S+) comes before it and could be had on nodes? (.*?): ")
_BEST = 8
"""The score of the first alternative of a list; each later one has one less."""


def placings(world: SmallWorld) -> Iterator[tuple[Model, str, int]]:
    """Of each pod that got a node: the model of that moment, the node, and how many took it."""
    history = raw.RawHistory(changes_of(world.cluster))
    for event in world.cluster.line.events:
        if event.type == "DecisionRecorded" and event.object["outcome"] == "Scheduled":
            body = event.object
            facts = Facts(history.at(event.stamp.observed))
            pod = f"{body['namespace']}/{body['name']}"
            named = facts.pods[pod]["spec"].get("resourceClaims") or ()
            if all("resourceClaimName" in one for one in named):
                yield Model(facts, pod), body["summary"]["node"], body["summary"]["feasible"]


def differences(world: PrioritizedWorld) -> Iterator[str]:
    """One line for each choice that is not as counted."""
    for model, node, fitted in placings(world):
        if not is_known(model):
            continue
        name = model.pod["metadata"]["name"]
        fitting = [one for one in model.nodes if not model.verdict(one).text]
        if fitted != len(fitting) or node not in fitting:
            yield f"pod {name} is on {node}, one of {fitted}, counted {fitting}"
            continue
        taken = _taken(world, model)
        for number, (got, _) in enumerate(taken):
            first = model.chosen(node, taken[:number])
            if first is None or first[number] != got:
                yield f"pod {name} got {taken} on {node}, counted {first}"
                break
        if not world.compares_nodes or not _has_one_list(model):
            continue
        scores = {one: score(model, model.chosen(one) or ()) for one in fitting}
        # Scores are compared as whole hundredths of the best one.
        most = max(scores.values())
        ranks = {one: 100 * scores[one] // most if most else 0 for one in fitting}
        alike = {one for one in fitting if _load(model, one) == _load(model, node)}
        better = {one for one in alike if ranks[one] > ranks[node]}
        if better:
            yield f"pod {name} is on {node}, better are {sorted(better)}: {scores}"


async def told_differences(world: PrioritizedWorld) -> list[str]:
    """One line for each claim of which `why` does not name the nodes with earlier alternatives."""
    wrong = []
    async with asking(world.cluster) as ask:
        for model, node, _ in placings(world):
            if not is_known(model) or not model.unallocated:
                continue
            claim = model.unallocated[0]
            name = claim["metadata"]["name"]
            present = world.cluster.get("resourceclaims", name)
            if present is None or present["metadata"]["uid"] != claim["metadata"]["uid"]:
                continue
            said: dict[str, set[str]] = {}
            own = {wish.name for wish in wishes(claim)[0]}
            for text in texts((await ask("resourceclaim", name)).reason):
                if (parts := _ELSEWHERE.match(text)) and parts[1] in own:
                    said[parts[1]] = set(re.findall(r"[\w-]+", parts[2]))
            counted = earlier(model, node)
            if said != counted:
                wrong.append(f"claim {name} on {node}: said {said}, counted {counted}")
    return wrong


def earlier(model: Model, own: str) -> dict[str, set[str]]:
    """The nodes that would give each earlier alternative of the first list of a pod."""
    ranks = {wish.name: rank for rank, wish in enumerate(wishes(model.unallocated[0])[0])}
    (got, *_) = model.chosen(own) or ("",)
    better: dict[str, set[str]] = {}
    for node in model.nodes:
        if node != own and not model.verdict(node).text:
            (other, *_) = model.chosen(node) or ("",)
            if ranks[other] < ranks[got]:
                better.setdefault(other, set()).add(node)
    return better


def _has_one_list(model: Model) -> bool:
    """Whether the first request alone has several alternatives, so that nothing comes before it."""
    lists = [either for claim in model.unallocated for either in wishes(claim)]
    return bool(lists) and not any("/" in each.name for either in lists[1:] for each in either)


def is_known(model: Model) -> bool:
    """Whether named defects of upstream cannot have changed the choice of the pod."""
    if "distinctAttribute" in str([one["spec"] for one in model.unallocated]):
        return False
    return not any(
        model.selected(wish, device, node) == "selector-error"
        for node in model.nodes
        for claim in model.unallocated
        for either in wishes(claim)
        for wish in either
        for device in model.devices(node)
    )


def score(model: Model, choice: tuple[str, ...]) -> int:
    """What the lists of the pod give: eight for each first alternative, seven for a second one.

    Claims that have devices count with what they have.
    """
    names = list(choice)
    for claim in model.claims:
        names += {one["request"] for one in results(claim)}
    return sum(
        _BEST - place
        for claim in model.claims
        for either in wishes(claim)
        for place, wish in enumerate(either)
        if "/" in wish.name and wish.name in names
    )


def _load(model: Model, node: str) -> tuple:
    """What else gives a node its score: the requests of its pods, and taints that only deter."""
    tree = model.facts.state["nodes", "", node]
    pods = [model.facts.pods[name] for name in model.facts.on_node(node)]
    requests = sorted(
        str((one.get("resources") or {}).get("requests"))
        for pod in pods
        if pod["status"].get("phase") not in FINISHED
        for one in pod["spec"]["containers"]
    )
    deterring = [one for one in tree["spec"].get("taints") or () if one["effect"][:6] == "Prefer"]
    return tree["status"]["allocatable"]["cpu"], requests, str(deterring)


def _taken(world: SmallWorld, model: Model) -> list[Taken]:
    """What each request of the pod got, in the order of its claims and their requests."""
    taken: list[Taken] = []
    changes = changes_of(world.cluster)
    for claim in model.unallocated:
        uid = claim["metadata"]["uid"]
        tree = next(
            one.tree
            for one in changes
            if one.tree and one.tree["metadata"]["uid"] == uid and results(one.tree)
        )
        names = dict.fromkeys(one["request"] for one in results(tree))
        taken += (
            (name, frozenset(device_of(one) for one in results(tree) if one["request"] == name))
            for name in names
        )
    return taken
