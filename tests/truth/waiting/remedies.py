"""Changes that let a pod run: applied to raw objects, enumerated one by one, and carried out.

`why` proposes changes as sentences. `changed` does what a sentence says to the objects of a moment,
`single_helps` tries each single change of the kinds that are proposed.
"""

import copy
import itertools
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from tests.truth.facts import Facts, amount, needs
from tests.truth.raw import State
from tests.truth.waiting import extended
from tests.truth.waiting.model import Model, Wish, wishes


def changed(state: State, sentence: str) -> State:
    """The objects after a change; raises AssertionError for a sentence that nobody understands."""
    after = copy.deepcopy(state)
    for pattern, act in _ACTS.items():
        if parts := re.fullmatch(pattern, sentence):
            act(after, *parts.groups())
            return after
    raise AssertionError(f"nobody knows how to do this: {sentence}")


def fits(state: State, node: str) -> bool:
    """Whether the model's pod fits on a node."""
    return not Model(Facts(state)).verdict(node).text


def has_errors(state: State) -> bool:
    """Whether a selector of the model's pod fails on a device of a node.

    Then the order of the search decides whether the pod fits.
    """
    model = Model(Facts(state))
    return any(
        model.selected(wish, device, node) == "selector-error"
        for node in model.nodes
        for claim in model.wanted(node)
        for wish in itertools.chain.from_iterable(wishes(claim))
        for device in model.devices(node)
    )


def single_helps(model: Model) -> Iterator[tuple[str, str]]:
    """Each node, and each sentence of one change after which the pod fits there."""
    for node in model.nodes:
        if not model.verdict(node).text:
            continue
        for sentence in dict.fromkeys(_singles(model, node)):
            if fits(changed(model.facts.state, sentence), node):
                yield node, sentence


def pairs_help(model: Model, *, tries_max: int) -> Iterator[tuple[str, str, str]]:
    """Each node, and each two sentences after which the pod fits there, within so many tries."""
    for node in model.nodes:
        for first in dict.fromkeys(_singles(model, node)):
            state = changed(model.facts.state, first)
            for second in dict.fromkeys(_singles(Model(Facts(state)), node)):
                tries_max -= 1
                if tries_max < 0:
                    return
                if fits(changed(state, second), node):
                    yield node, first, second


def _singles(model: Model, node: str) -> Iterator[str]:
    tree = model.facts.state["nodes", "", node]
    if tree["spec"].get("unschedulable"):
        yield f"uncordon node {node}"
    if tree["spec"].get("taints"):
        yield f"remove taint all of node {node}"
    if model.verdict(node).plugin not in ("DynamicResources", ""):
        return  # nothing else that is proposed is about a node's own plug-ins
    for name, claim in model.facts.claims.items():
        if (claim.get("status") or {}).get("allocation"):
            yield f"release claim {name}"
    yield from (f"remove DeviceTaintRule {name}" for name, _ in model.facts.all("devicetaintrules"))
    for pool in model.pools(node):
        if not pool.is_complete:
            spec = pool.slices[0]["spec"]
            place = f"{spec['driver']}/{spec['pool']['name']}"
            yield f"state {len(pool.slices)} as resourceSliceCount in pool {place}"
    yield from _of_names(model, node)
    yield from _of_counters(model, node)
    yield from _of_containers(model, node)
    yield from _of_classes(model, node)
    for claim in model.unallocated:
        place = f"of claim default/{claim['metadata']['name']}"
        for index, one in enumerate(claim["spec"]["devices"].get("constraints") or ()):
            name = one.get("matchAttribute") or one["distinctAttribute"]
            yield f"drop constraint #{index} ({name}) {place}"
        for wish in (wish for either in wishes(claim) for wish in either):
            for what in _of_request(model, node, wish):
                yield f"{what} in request {wish.name} {place}"


def _of_names(model: Model, node: str) -> Iterator[str]:
    """Each slice of a pool leaves out what one before it has, too."""
    for pool in model.pools(node):
        for first, second in itertools.combinations(pool.slices, 2):
            one, other = ({each["name"] for each in tree["spec"].get("devices") or ()}
                          for tree in (first, second))  # fmt: skip
            if one & other:
                place = f"{first['spec']['driver']}/{first['spec']['pool']['name']}"
                names = second["metadata"]["name"], first["metadata"]["name"]
                yield "leave out of slice {} the devices that slice {} of pool {} has".format(
                    *names, place
                )


def _of_counters(model: Model, node: str) -> Iterator[str]:
    for device in model.devices(node):
        left = model.facts.left(device.id[:2])
        for (group, counter), drawn in needs(device).items():
            if (lacking := drawn - left[group, counter]) > 0:
                pool = "/".join(device.id[:2])
                yield f"add {lacking} to counter {counter} of set {group} in pool {pool}"


def _of_containers(model: Model, node: str) -> Iterator[str]:
    """Of what devices of the node serve, each container asks for less; nobody writes that claim."""
    tree = model.facts.state["nodes", "", node]
    for container in extended.containers(model.pod):
        for resource, text in extended.wants(container).items():
            is_served = extended.class_of(model.facts, resource) and "/" in resource
            if is_served and not extended.offered(tree, resource):
                for count in range(int(text) - 1, 0, -1):
                    less = f"request {count} instead of {text} {resource}"
                    yield f"{less} in container {container['name']}"


def _of_classes(model: Model, node: str) -> Iterator[str]:
    """The class that serves a resource of the pod on the node gives its name to an older one."""
    tree = model.facts.state["nodes", "", node]
    for resource in {
        name for one in extended.containers(model.pod) for name in extended.wants(one)
    }:
        newest = extended.class_of(model.facts, resource)
        named = [
            name
            for name, one in model.facts.all("deviceclasses")
            if one["spec"].get("extendedResourceName") == resource
        ]
        if newest in named and len(named) > 1 and not extended.offered(tree, resource):
            yield f"take extendedResourceName {resource} from DeviceClass {newest}, so that it does"


def _of_request(model: Model, node: str, wish: Wish) -> Iterator[str]:
    for device in model.devices(node):
        for _, taint in model.blocking(wish, device):
            value = f"={taint['value']}" if taint.get("value") else ""
            yield f"tolerate taint {taint['key']}{value}:{taint['effect']}"
        for name, capacity in (device.tree.get("capacity") or {}).items():
            if name in wish.capacity:
                left = amount(capacity["value"]) - model.consumed_of(device, name)
                for most in (left, *_allowed(capacity)):
                    if 0 < most < wish.capacity[name] and most <= left:
                        yield f"ask for {most} of {name}"
    for name in wish.capacity:
        yield f"ask for no {name}"
    for number, _ in enumerate(wish.tree.get("selectors") or ()):
        yield f"drop selector #{number} (it)"
    if not wish.takes_all:
        yield from (f"lower count to {count}" for count in range(wish.count - 1, 0, -1))


def _allowed(capacity: dict) -> Iterator[Fraction]:
    policy = capacity.get("requestPolicy") or {}
    yield from (amount(one) for one in policy.get("validValues") or ())
    if limits := policy.get("validRange"):
        yield amount(limits["max"])


# What a sentence does to the objects.


def _request_less(state: State, count: str, resource: str, name: str) -> None:
    for container in extended.containers(state["pods", "default", "p"]):
        if container["name"] == name:
            for amounts in container["resources"].values():
                amounts[resource] = count


def _uncordon(state: State, node: str) -> None:
    spec = state["nodes", "", node]["spec"]
    spec["unschedulable"] = False
    closing = "node.kubernetes.io/unschedulable"
    spec["taints"] = [one for one in spec.get("taints") or () if one["key"] != closing]


def _request(state: State, claim: str, name: str) -> dict:
    devices = state[("resourceclaims", *claim.split("/"))]["spec"]["devices"]
    main, _, alternative = name.partition("/")
    for request in devices["requests"]:
        if request["name"] == main:
            if not alternative:
                return request["exactly"]
            return next(one for one in request["firstAvailable"] if one["name"] == alternative)
    raise AssertionError(f"no request {name} of {claim}")


def _release(state: State, claim: str) -> None:
    tree = state[("resourceclaims", *claim.split("/"))]
    tree["status"] = {}


def _enlarge(state: State, more: str, counter: str, group: str, driver: str, pool: str) -> None:
    for tree in _slices(state, driver, pool):
        for one in tree["spec"].get("sharedCounters") or ():
            if one["name"] == group:
                value = one["counters"][counter]
                value["value"] = str(amount(value["value"]) + amount(more))


def _slices(state: State, driver: str, pool: str) -> Iterator[dict]:
    for (resource, _, _), tree in state.items():
        if resource == "resourceslices":
            spec = tree["spec"]
            if (spec["driver"], spec["pool"]["name"]) == (driver, pool):
                yield tree


def _count_slices(state: State, count: str, driver: str, pool: str) -> None:
    for tree in _slices(state, driver, pool):
        tree["spec"]["pool"]["resourceSliceCount"] = int(count)


def _leave_out(state: State, losing: str, keeping: str, *_: str) -> None:
    """The slices `losing` without the devices of those before them, which are `keeping`."""
    having: set[str] = set()
    for name in sorted({*losing.split(" and "), *keeping.split(" and ")}):
        spec = state["resourceslices", "", name]["spec"]
        spec["devices"] = [one for one in spec["devices"] if one["name"] not in having]
        having |= {one["name"] for one in spec["devices"]}


def _tolerate(state: State, key: str, value: str, effect: str, request: str, claim: str) -> None:
    taint = {"key": key, "operator": "Equal", "value": value.removeprefix("="), "effect": effect}
    _request(state, claim, request).setdefault("tolerations", []).append(taint)


def _tolerate_in_pod(state: State, key: str, value: str | None, effect: str) -> None:
    made = {"key": key, "operator": "Equal", "value": (value or "")[1:], "effect": effect}
    state["pods", "default", "p"]["spec"].setdefault("tolerations", []).append(made)


def _label(state: State, node: str, added: str) -> None:
    labels = state["nodes", "", node]["metadata"].setdefault("labels", {})
    labels.update(one.split("=") for one in added.split(", "))


def _drop_selected(state: State, said: str) -> None:
    """The pod without what is named of its node selector, and without the named affinity."""
    spec = state["pods", "default", "p"]["spec"]
    affinity = spec.get("affinity") or {}
    for one in said.split(" and "):
        if one.endswith(" from the node affinity"):
            affinity.pop("nodeAffinity", None)
        elif one.startswith("the required pod anti-affinity"):
            affinity.pop("podAntiAffinity", None)
        elif one.startswith("the required pod affinity"):
            affinity.pop("podAffinity", None)
        else:
            del spec["nodeSelector"][one.split("=")[0]]


def _drop_selector(state: State, number: str, request: str, claim: str) -> None:
    del _request(state, claim, request)["selectors"][int(number)]


def _ask_less(state: State, most: str, name: str, request: str, claim: str) -> None:
    requests = _request(state, claim, request)["capacity"]["requests"]
    if most == "no":
        del requests[name]
    else:
        requests[name] = most


def _drop_constraint(state: State, index: str, claim: str) -> None:
    del state[("resourceclaims", *claim.split("/"))]["spec"]["devices"]["constraints"][int(index)]


def _prefer(state: State, main: str, name: str, claim: str) -> None:
    devices = state[("resourceclaims", *claim.split("/"))]["spec"]["devices"]
    either = next(one for one in devices["requests"] if one["name"] == main)["firstAvailable"]
    either.sort(key=lambda one: one["name"] != name)


def _unname(state: State, resource: str, name: str) -> None:
    assert state["deviceclasses", "", name]["spec"].pop("extendedResourceName") == resource


def _select(state: State, name: str, expressions: str) -> None:
    selectors = [{"cel": {"expression": one}} for one in expressions.split(" and ")]
    state["deviceclasses", "", name]["spec"]["selectors"] = selectors


def _attribute(state: State, name: str, driver: str, pool: str, device: str, value: str) -> None:
    typed = {"int": int(value)} if value.isdigit() else {"string": value}
    own = name.removeprefix(f"{driver}/")
    for tree in _slices(state, driver, pool):
        for one in tree["spec"].get("devices") or ():
            if one["name"] == device:
                one.setdefault("attributes", {})[own] = typed


_ACTS: dict[str, Callable[..., None]] = {
    r"uncordon node (\S+)": _uncordon,
    r"remove taints? .+ of node (\S+)": lambda state, node: state["nodes", "", node]["spec"].update(
        taints=[]
    ),
    r"release claim (\S+)": _release,
    r"remove DeviceTaintRule (\S+)": lambda state, name: state.pop(("devicetaintrules", "", name)),
    r"add (\S+) to counter (\S+) of set (\S+) in pool ([^/]+)/(\S+)": _enlarge,
    r"state (\d+) as resourceSliceCount in pool ([^/]+)/(\S+)": _count_slices,
    r"leave out of slices? (.+) the devices that slices? (.+) of pool (\S+) ha(?:s|ve)": _leave_out,
    r"tolerate taint ([^:=]+)(=[^:]*)?:(\S+) in request (\S+) of claim (\S+)": (
        lambda state, key, value, *rest: _tolerate(state, key, value or "", *rest)
    ),
    r"tolerate taint ([^:=]+)(=[^:]*)?:(\S+) in the pod": _tolerate_in_pod,
    r"label node (\S+) with ([^ ]+(?:, \S+=\S+)*)": _label,
    r"drop (.*) of the pod": _drop_selected,
    r"drop selector #(\d+) .* in request (\S+) of claim (\S+)": _drop_selector,
    r"ask for (\S+) of (\S+) in request (\S+) of claim (\S+)": _ask_less,
    r"ask for (no) (\S+) in request (\S+) of claim (\S+)": _ask_less,
    r"lower count to (\d+) in request (\S+) of claim (\S+)": (
        lambda state, count, request, claim: _request(state, claim, request).update(
            count=int(count)
        )
    ),
    r"request (\S+) instead of \S+ (\S+) in container (\S+)": _request_less,
    r"take extendedResourceName (\S+) from DeviceClass (\S+), so that .*": _unname,
    r"give DeviceClass (\S+) the selectors? back that it had before revision \d+: (.*)": _select,
    r"drop constraint #(\d+) .* of claim (\S+)": _drop_constraint,
    r"put alternative ([^/]+)/(\S+) of claim (\S+) first": _prefer,
    r"set attribute (\S+) of device ([^/]+)/([^/]+)/(\S+) to (\S+), in its driver or by a .*": (
        _attribute
    ),
}
"""What each sentence does; it is written as a reader understands it."""
