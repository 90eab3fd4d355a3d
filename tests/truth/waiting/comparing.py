"""Compares what `why` says of a pod, in JSON and in text, with what the model counts."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.truth.facts import device_of, needs, results
from tests.truth.waiting import amounts, extended_answers
from tests.truth.waiting.model import Model, Verdict, Wish, wishes

WORDS = {
    "for other nodes": "other-node",
    "not selected": "selector",
    "allocated": "allocated",
    "failing a selector": "selector-error",
    "without a capacity that is requested": "capacity-missing",
    "whose request policy does not allow the amount": "capacity-policy",
    "with too little capacity left": "capacity",
    "short of a counter": "counters",
    "tainted": "taint",
    "against a constraint": "constraint",
}
"""What stands after the number of devices with a cause."""


def differences(model: Model, answer: dict, page: str) -> Iterator[str]:
    """One line for each statement that is not as counted. `page` is the answer as text."""
    state = model.state
    if state == "waiting":
        yield from _waiting(model, answer, page)
        return
    said = answer["text"]
    if state == "running":
        if f"node {model.pod['spec']['nodeName']}" not in said:
            yield f"a pod on {model.pod['spec']['nodeName']}: {said}"
    elif answer.get("nodes"):
        yield f"{state}: nodes are asked: {said}"
    words = {
        "terminating": [
            "ends on node" if model.pod["spec"].get("nodeName") else "is being deleted"
        ],
        "left": [model.pod["spec"].get("schedulerName", "")],
        "gated": [one["name"] for one in model.pod["spec"].get("schedulingGates") or ()],
        "unasked": [model.unasked],
        "running": [],
    }[state]
    for word in words:
        if word not in said:
            yield f"{state}: nothing of {word} in {said!r}"


def _waiting(model: Model, answer: dict, page: str) -> Iterator[str]:
    nodes = {one["node"]: one for one in answer["nodes"]}
    if set(nodes) != set(model.nodes):
        yield f"nodes {sorted(nodes)} of {sorted(model.nodes)}"
        return
    fits = 0
    for name, said in nodes.items():
        verdict = model.verdict(name)
        fits += not said["text"]
        for one in _node(model, name, said, verdict):
            yield f"node {name}: {one}"
    head = f"{fits} of {len(nodes)} node"
    if len(nodes) == 1:
        head = f"it {'would' if fits else 'does not'} fit on node {next(iter(nodes))}"
    if head not in answer["text"]:
        yield f"{head}, but the head says {answer['text']!r}"
    yield from _groups(answer, page)
    yield from extended_answers.differences(model, answer)


def _node(model: Model, node: str, said: dict, verdict: Verdict) -> Iterator[str]:
    text = said["text"]
    if said.get("quirks"):
        return  # a named defect of upstream took part; the model has none
    if verdict.error:
        if verdict.text not in text and "CEL runtime error" not in text:
            yield f"said {text!r}, counted an error: {verdict.text}"
        return
    if "CEL runtime error" in text:
        yield from _error(model, node, text, verdict)
        return
    if "cannot add device" in text:
        return  # a constraint ends mode All with an error (known issue Q10)
    if text != verdict.text:
        yield f"said {text!r}, counted {verdict.text!r}"
        return
    if "claims" not in said:
        return
    if said["outcome"] == "allocated":
        yield from _chosen(model, node, said)
        return
    wanted = [(claim, wish) for claim in model.wanted(node) for r in wishes(claim) for wish in r]
    shown = [(claim["claim"], one) for claim in said["claims"] for one in claim["requests"]]
    names = [(_name(claim), wish.name) for claim, wish in wanted]
    if [(claim, one["request"]) for claim, one in shown] != names:
        yield f"requests {[(claim, one['request']) for claim, one in shown]}, counted {names}"
        return
    for (claim, wish), (_, one) in zip(wanted, shown, strict=True):
        for difference in _request(model, node, claim, wish, one):
            yield f"claim {_name(claim)}, request {wish.name}: {difference}"


def _chosen(model: Model, node: str, said: dict) -> Iterator[str]:
    """Where it fits: nothing is against a chosen device, and what is said against others is so."""
    by_name = {"/".join(device.id): device for device in model.devices(node)}
    known = {
        (_name(claim), wish.name): (claim, wish)
        for claim in model.wanted(node)
        for either in wishes(claim)
        for wish in either
    }
    for place in said["claims"]:
        for one in place["requests"]:
            claim, wish = known[place["claim"], one["request"]]
            for group in one["devices"]:
                for name in (f"{p}/{n}" for p, each in group["devices"].items() for n in each):
                    against = model.causes(claim, wish, by_name[name], node)
                    if group["cause"] in ("chosen", "suitable") and against:
                        yield f"{name} is {group['cause']}, counted {against}"
                    if group["cause"] in _STATIC and group["cause"] not in against:
                        yield f"{name} is {group['cause']}, counted {against}"


_STATIC = ("other-node", "selector", "allocated", "capacity-missing", "capacity-policy", "taint")
"""Causes that do not depend on what the pod itself takes."""


def _name(claim: dict) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def _error(model: Model, node: str, text: str, verdict: Verdict) -> Iterator[str]:
    """An error of a selector must be of a device that a request of the pod may look at."""
    place = re.search(r"on device (\S+): ", text)
    failing = {
        "/".join(device.id)
        for claim in model.wanted(node)
        for either in wishes(claim)
        for wish in either
        for device in model.devices(node)
        if model.selected(wish, device, node) == "selector-error"
    }
    # Releases before 1.37 do not name the device.
    if not failing or (place is not None and place[1] not in failing):
        yield f"said {text!r}, counted errors on {sorted(failing)}"
    if verdict.plugin not in ("", "DynamicResources"):
        yield f"said {text!r}, counted {verdict.text!r}"


def _request(model: Model, node: str, claim: dict, wish: Wish, said: dict) -> Iterator[str]:
    firsts = {
        device.id: next(iter(model.causes(claim, wish, device, node)), "suitable")
        for device in model.devices(node)
    }
    shown: dict[str, tuple[str, str]] = {}
    for group in said["devices"]:
        names = [f"{pool}/{name}" for pool, each in group["devices"].items() for name in each]
        if group["count"] != len(names):
            yield f"{group['count']} devices, named {names}"
        for name in names:
            if name in shown:
                yield f"{name} twice"
            shown[name] = (group["cause"], group["text"])
    counted = {"/".join(id): cause for id, cause in firsts.items()}
    if {name: cause for name, (cause, _) in shown.items()} != counted:
        yield f"said { {n: c for n, (c, _) in shown.items()} }, counted {counted}"
        return
    suitable = sum(cause == "suitable" for cause in counted.values())
    needed = max(len(model.listed(wish, node)), 1) if wish.takes_all else wish.count
    numbers = (said["suitable"], said["total"], said["needs"])
    if numbers != (suitable, len(counted), needed):
        yield f"said {numbers}, counted {(suitable, len(counted), needed)}"
    if counted:
        yield from _numbers(said["text"], suitable, Counter(counted.values()))
    for device in model.devices(node):
        cause, text = shown["/".join(device.id)]
        for difference in _details(model, wish, device, cause, text):
            yield f"{'/'.join(device.id)}: {difference}"


def _numbers(text: str, suitable: int, counted: Counter) -> Iterator[str]:
    """The numbers of a sentence: those that can be taken, and those with each cause."""
    first = re.search(r"(\d+) of (\d+) can be taken", text)
    if first is None or (int(first[1]), int(first[2])) != (suitable, sum(counted.values())):
        yield f"{text!r}, counted {suitable} of {sum(counted.values())}"
        return
    said: Counter = Counter()
    for number, words in re.findall(rf"(\d+) ({'|'.join(WORDS)})(?= \(|,|$)", text):
        said[WORDS[words]] += int(number)
    del counted["suitable"]
    if said != counted and "more cause" not in text:
        yield f"{text!r}, counted {dict(counted)}"


def _details(model: Model, wish: Wish, device, cause: str, text: str) -> Iterator[str]:
    """The names and amounts of one cause."""
    holders = model.facts.holders.get(device.id, set())
    rules = {rule for rule, _ in model.blocking(wish, device) if rule}
    keys = {taint["key"] for _, taint in model.blocking(wish, device)}
    if cause == "allocated":
        named = _claims_in(model, text)
        if named != holders and "more" not in text:
            yield f"said {text!r}, counted {holders}"
    names_taint = re.search(r"\btaint \S+", text) is not None
    if names_taint != bool(keys) and cause in ("allocated", "taint", "capacity", "counters"):
        yield f"said {text!r}, counted the taints {keys}"
    if cause == "taint":
        if not any(key in text for key in keys):
            yield f"said {text!r}, counted {keys}"
        named = set(re.findall(r"by rule (\S+)", text))
        if not named <= rules:
            yield f"said {text!r}, counted the rules {rules}"
    if cause in ("capacity", "counters"):
        near = holders if cause == "capacity" else _users(model, device)
        named = _claims_in(model, text)
        if named != near and "more" not in text:
            yield f"said {text!r}, counted {near}"
    yield from amounts.differences(model, wish, device, cause, text)


def _claims_in(model: Model, text: str) -> set[str]:
    """The claims that a text names."""
    spaces = {re.escape(name.partition("/")[0]) for name in model.facts.claims} or {"default"}
    return set(re.findall(rf"\b(?:{'|'.join(sorted(spaces))})/[\w.-]+", text))


def _users(model: Model, device) -> set[str]:
    """The claims with devices that draw on the counters of which too little is left."""
    left = model.facts.left(device.id[:2])
    short = {one for one, needed in needs(device).items() if needed > left.get(one, 0)}
    return {
        name
        for name, claim in model.facts.claims.items()
        for one in results(claim)
        if not one.get("adminAccess")
        and (other := model.facts.devices.get(device_of(one)))
        and other.id[:2] == device.id[:2]
        and (needs(other).keys() & short if short else needs(other))
    }


def _groups(answer: dict, page: str) -> Iterator[str]:
    """Each node stands in one group of the tree, and what the tree says stands on the page."""
    names = {one["node"] for one in answer["nodes"]}
    texts: dict[str, int] = defaultdict(int)
    for one in answer["nodes"]:
        texts[one["text"] or "it fits"] += 1
    shown: dict[str, int] = defaultdict(int)
    for child in answer["reasons"]["children"]:
        subject, _, rest = child["text"].partition(": ")
        if subject in names or re.match(r"\d+ nodes \(", subject):
            shown[rest.removesuffix(" (the others alike)")] += child.get("count", 1)
            if f"─ {subject}:" not in page:
                yield f"{child['text']!r} is not on the page"
    if "(the others alike)" not in str(answer["reasons"]) and dict(shown) != dict(texts):
        yield f"groups {dict(shown)}, nodes {dict(texts)}"
