"""Changes of the lines of a recording, each with what it must change in what the lines say.

An alteration is given the lines up to a moment, and the pod that waits then. It returns the names
that no answer may say afterwards. `NotFound` says that there is nothing to alter.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.adversary.log import Json, Log, NotFound
from tests.truth.altered.lines import key_of, state
from tests.truth.altered.model import RecordedModel, model_of
from tests.truth.facts import Facts, device_of, results
from tests.truth.waiting.model import wishes

Signature = dict[tuple[str, str, str], frozenset[str]]
"""The causes against each device, by node, request and device; of a node, what refuses the pod."""


def modelled(log: Log, pod: str) -> RecordedModel:
    """The model of a pod at the end of a log."""
    return model_of(Facts(state(log.lines)), pod)


def signature(model: RecordedModel) -> Signature:
    """What is against the pod on each node, and against each device for each request there."""
    causes = {
        (node, wish.name, "/".join(device.id)): frozenset(model.causes(claim, wish, device, node))
        for node in model.nodes
        for claim in model.unallocated
        for either in wishes(claim)
        for wish in either
        for device in model.devices(node)
    }
    for node in model.nodes:
        verdict = model.verdict(node)
        is_closed = verdict.plugin not in ("", "DynamicResources")
        causes[node, "", ""] = frozenset({"closed"} if is_closed else ())
    return causes


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change, and the causes that it takes from or gives to devices, and no others."""

    change: Callable[[Log, RecordedModel], set[str]]
    takes: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()
    nodes: int = 0

    def made(self, before: RecordedModel, log: Log, pod: str) -> tuple[RecordedModel, set[str]]:
        """Changes a log; returns what its lines say then, and names that they do not have any more.

        Raises `NotFound` where nothing changes; what changes must be what was stated.
        """
        gone = self.change(log, before)
        after = modelled(log, pod)
        old, new = signature(before), signature(after)
        added = set(after.nodes) - set(before.nodes)
        assert len(added) == self.nodes
        kept = {place: new.get(place, frozenset()) for place in old}
        lost = {cause for place, causes in old.items() for cause in causes - kept[place]}
        more = {cause for place, causes in old.items() for cause in kept[place] - causes}
        assert lost <= self.takes, (lost, self.takes)
        assert more <= self.gives, (more, self.gives)
        if not (lost or more or any(not after.verdict(node).text for node in added)):
            raise NotFound("nothing changes")
        return after, gone


def without_rule(log: Log, model: RecordedModel) -> set[str]:
    """The rule that keeps the pod off its devices was never made."""
    rules = {
        rule
        for node in model.nodes
        for device in model.devices(node)
        for wish in model.wished()
        for rule, _ in model.blocking(wish, device)
        if rule
    }
    if not rules:
        raise NotFound("no rule keeps the pod off")
    rule = min(rules)
    log.drop(
        lambda line: line["objectRef"]["resource"] == "devicetaintrules" and key_of(line)[2] == rule
    )
    return {f"rule {rule}"}


def freed(log: Log, model: RecordedModel) -> set[str]:
    """The claim that holds a device which the pod may have, and its pods, were never made."""
    for claim in holders(model):
        namespace, _, name = claim.partition("/")
        pods = set(model.facts.pods_of(claim))
        names = {name, *(pod.partition("/")[2] for pod in pods)}
        if model.pod["metadata"]["name"] in names:
            continue
        log.drop(lambda line, names=names, space=namespace: _is_of(line, space, names))
        return {claim}
    raise NotFound("no other claim holds a device that the pod may have")


def _is_of(line: Json, namespace: str, names: set[str]) -> bool:
    _, space, name = key_of(line)
    return space == namespace and (name in names or name.partition(".")[0] in names)


def holders(model: RecordedModel) -> Iterator[str]:
    """The claims with devices to which only their holders are an obstacle."""
    for (_, _, device), causes in signature(model).items():
        if causes and causes <= {"allocated", "counters"}:
            for claim, tree in model.facts.claims.items():
                if any("/".join(device_of(one)) == device for one in results(tree)):
                    yield claim


def raised(log: Log, model: RecordedModel) -> set[str]:
    """Drivers publish a hundred times as much of each counter."""
    if not any("counters" in causes for causes in signature(model).values()):
        raise NotFound("no counter is short")

    def change(body: Json) -> None:
        for one in body["spec"].get("sharedCounters") or ():
            for counter in one["counters"].values():
                counter["value"] = _times_hundred(counter["value"])

    for key, tree in model.facts.state.items():
        if key[0] == "resourceslices":
            log.alter(tree["metadata"]["uid"], change)
    return set()


def _times_hundred(value: str) -> str:
    digits = value.rstrip("KMGTPEikmun")
    return f"{int(digits) * 100}{value[len(digits) :]}"


def without_attributes(log: Log, model: RecordedModel) -> set[str]:
    """Drivers publish no attribute that the pod's selectors read."""

    def change(body: Json) -> None:
        for device in body["spec"].get("devices") or ():
            device.pop("attributes", None)

    for key, tree in model.facts.state.items():
        if key[0] == "resourceslices":
            log.alter(tree["metadata"]["uid"], change)
    return set()


def without_labels(log: Log, model: RecordedModel) -> set[str]:
    """Nodes have none of the labels by which slices and devices select them."""
    for key, tree in model.facts.state.items():
        if key[0] == "nodes":
            log.alter(tree["metadata"]["uid"], lambda body: body["metadata"].pop("labels", None))
    return set()


def opened(log: Log, model: RecordedModel) -> set[str]:
    """No node has a taint or is cordoned."""

    def change(body: Json) -> None:
        for field in ("taints", "unschedulable"):
            (body.get("spec") or {}).pop(field, None)

    for key, tree in model.facts.state.items():
        if key[0] == "nodes":
            log.alter(tree["metadata"]["uid"], change)
    return set()


def other_driver(log: Log, model: RecordedModel) -> set[str]:
    """The classes of the pod select a driver that publishes nothing."""

    def change(body: Json) -> None:
        for one in body["spec"].get("selectors") or ():
            one["cel"]["expression"] = "device.driver == 'none.example.com'"

    for wish in model.wished():
        tree = model.facts.state["deviceclasses", "", wish.tree["deviceClassName"]]
        log.alter(tree["metadata"]["uid"], change)
    return set()


def with_node(log: Log, model: RecordedModel) -> set[str]:
    """There is one more node, like another but with no taint, and with slices like its own."""
    sources = {
        device.spec["nodeName"]: None
        for node in model.nodes
        for device in model.devices(node)
        if "nodeName" in device.spec
    }
    if not sources:
        raise NotFound("no slice of a single node")
    source = next(iter(sources))
    log.widen()
    for number in range(len(log.lines) - 1, -1, -1):
        line = log.lines[number]
        answer = line.get("responseObject") or {}
        is_node = line["objectRef"]["resource"] == "nodes" and key_of(line)[2] == source
        is_slice = (
            line["objectRef"]["resource"] == "resourceslices"
            and (answer.get("spec") or {}).get("nodeName") == source
        )
        if line["verb"] != "create" or not (is_node or is_slice):
            continue
        log.lines.insert(number + 1, _twin(line, source))
    return set()


def _twin(line: Json, source: str) -> Json:
    uid = line["responseObject"]["metadata"]["uid"]
    text = json.dumps(line).replace(source, "extra-1").replace(uid, f"e{uid[1:]}")
    twin: Json = json.loads(text)
    twin["auditID"] = f"e{twin['auditID'][1:]}"
    answer = twin["responseObject"]
    version = answer["metadata"]["resourceVersion"]
    answer["metadata"]["resourceVersion"] = str(int(version) + 1)
    for body in (answer, twin["requestObject"]):
        (body.get("spec") or {}).pop("taints", None)
        for device in body["spec"].get("devices") or ():
            device.pop("taints", None)
    return twin


ALTERATIONS = {
    "without_rule": Alteration(without_rule, takes=frozenset({"taint"})),
    "freed": Alteration(freed, takes=frozenset({"allocated", "counters", "capacity"})),
    "raised": Alteration(raised, takes=frozenset({"counters"})),
    "without_attributes": Alteration(
        without_attributes, gives=frozenset({"selector-error"}), takes=frozenset({"selector"})
    ),
    "without_labels": Alteration(without_labels, gives=frozenset({"other-node"})),
    "opened": Alteration(opened, takes=frozenset({"closed"})),
    # What a selector excludes is not asked whether it is for the node.
    "other_driver": Alteration(
        other_driver,
        gives=frozenset({"selector"}),
        takes=frozenset({"selector-error", "other-node"}),
    ),
    "with_node": Alteration(with_node, nodes=1),
}
