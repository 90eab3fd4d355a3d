"""Cases of the taint eviction inventory: informer events in phases, in every order.

A case is a list of phases. The chains of a phase are put into every order that keeps each chain's
own order; nobody works before all of a phase has been seen, which is when upstream's handlers have
run and its workers have not. Between phases the workers come to rest.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.adapters.uids import DerivedUids
from app.bootstrap.rules import rules_for
from app.domain.controllers.eviction import EvictionReconciler
from app.domain.controllers.rule_status import RuleStatusReconciler
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject, ImportObject
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.reconciling import ReplayTimeline
from tests.cluster import DRIVER, T0, USER, group_of

ORDERS_MAX = 720
"""Orders of one phase; a case that needs more must say less."""

AT = timestamps.seconds_text(T0)

NAMESPACES = ("default", "other")

Change = tuple[str, JsonObject]
Chain = tuple[Change, ...]


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A phase in which only time passes."""

    seconds: int


@dataclass(frozen=True, kw_only=True)
class Case:
    """What informers tell, and what must come of it in any order.

    `deleted` is the second of each pod's eviction, `said` its Event texts, `rules` the reason and
    message of each condition at the end, `pending` all messages of pods that were to be evicted,
    `claims` the second and number of reasons of each claim's eviction.
    """

    name: str
    phases: tuple[tuple[Chain, ...] | Wait, ...]
    deleted: dict[str, int] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)
    rules: dict[str, tuple[str, str]] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    claims: dict[str, tuple[int, int]] | None = None


@dataclass
class Seen:
    """What came of a case in one order."""

    deleted: dict[str, int]
    said: dict[str, list[str]]
    rules: dict[str, tuple[str, str]]
    pending: frozenset[str]
    claims: dict[str, tuple[int, int]]


def outcomes(case: Case) -> Iterator[tuple[str, Seen]]:
    """What comes of the case in each order of its events, with the order told."""
    parts = [[phase] if isinstance(phase, Wait) else orders(phase) for phase in case.phases]
    assert sum(len(part) for part in parts) <= ORDERS_MAX, "too many orders for one case"
    # Each phase is put into every order with the other phases in their first one.
    firsts = [part[0] for part in parts]
    yield "as written", run(firsts)
    for place, part in enumerate(parts):
        for number, other in enumerate(part[1:], 1):
            chosen = [*firsts[:place], other, *firsts[place + 1 :]]
            yield f"phase {place}, order {number}", run(chosen)


def orders(chains: tuple[Chain, ...]) -> list[list[Change]]:
    """All interleavings of the chains."""
    tags = [number for number, chain in enumerate(chains) for _ in chain]
    found = []
    for order in sorted(set(itertools.permutations(tags))):
        rest = [iter(chain) for chain in chains]
        found.append([next(rest[number]) for number in order])
    return found


def run(phases: list[list[Change] | Wait]) -> Seen:
    """What came of it when these phases were told in this order."""
    return tell(phases)[1]


def tell(phases: list[list[Change] | Wait]) -> tuple[ReplayTimeline, Seen]:
    """Tell the phases to the two controllers alone, then let 4,000 s pass."""
    evictions = EvictionReconciler()
    line = ReplayTimeline(
        rules=rules_for(Profile()),
        uids=DerivedUids(1),
        controllers=(RuleStatusReconciler(), evictions),
        start=T0,
    )
    for name in NAMESPACES:
        tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        key = ObjectKey("", "namespaces", "", name)
        line.submit(CreateObject(key=key, version="v1", tree=tree), actor=USER)
    for phase in phases:
        if isinstance(phase, Wait):
            line.advance(Instant(line.now + phase.seconds * SECOND))
            continue
        for operation, tree in phase:
            line.submit(_import(line, operation, tree), actor=USER)
        line.settle()
    claims = {
        name: ((claim.eviction.time - T0) // SECOND, len(claim.eviction.reasons))
        for (_, name), claim in evictions.state.claims.items()
        if claim.eviction is not None
    }
    line.advance(Instant(line.now + 4000 * SECOND))
    assert line.refusals == [], line.refusals[0][1]
    return line, _seen(line, claims)


def _import(line: ReplayTimeline, operation: str, tree: JsonObject) -> ImportObject:
    resource = {
        "Pod": "pods",
        "ResourceClaim": "resourceclaims",
        "ResourceSlice": "resourceslices",
        "DeviceTaintRule": "devicetaintrules",
    }[tree["kind"]]
    metadata = tree["metadata"]
    key = ObjectKey(group_of(resource), resource, metadata.get("namespace", ""), metadata["name"])
    held = line.views.objects.get(key)
    # A status that the controllers wrote meanwhile is in what an informer tells later.
    if held is not None and tree["kind"] == "DeviceTaintRule":
        tree = {**tree, "status": held.get("status", {})}
    return ImportObject(
        operation=operation, key=key, uid=metadata["uid"], tree=json_tree.copy(tree)
    )


def _seen(line: ReplayTimeline, claims: dict[str, tuple[int, int]]) -> Seen:
    deleted: dict[str, int] = {}
    said: dict[str, list[str]] = {}
    pending = set()
    for event in line.events:
        tree = event.object
        if event.type == "DecisionRecorded" and tree["outcome"] == "Evicted":
            assert tree["name"] not in deleted, "each pod is evicted once"
            deleted[tree["name"]] = (event.stamp.time - T0) // SECOND
        elif event.key.resource == "events":
            # A repetition is one event with a higher count, so each of them is said once.
            said.setdefault(tree["involvedObject"]["name"], []).append(tree["message"])
        elif event.key.resource == "devicetaintrules":
            for condition in json_tree.objects(tree, "status", "conditions"):
                if condition["reason"] == "PodsPendingEviction":
                    pending.add(condition["message"])
    rules = {
        key.name: (condition["reason"], condition["message"])
        for key in line.views.objects.keys("resource.k8s.io", "devicetaintrules")
        for condition in json_tree.objects(
            line.views.objects.get(key) or {}, "status", "conditions"
        )
    }
    return Seen(deleted, said, rules, frozenset(pending), claims)


# What informers tell


def add(tree: JsonObject) -> Change:
    return ("ADDED", tree)


def change(tree: JsonObject) -> Change:
    return ("MODIFIED", tree)


def remove(tree: JsonObject) -> Change:
    return ("DELETED", tree)


def taint(key: str = "bad", value: str = "x", effect: str = "NoExecute") -> JsonObject:
    return {"key": key, "value": value, "effect": effect, "timeAdded": AT}


def tolerate(seconds: int | None = None, key: str = "bad", **more: str) -> JsonObject:
    found: JsonObject = {"key": key, "operator": "Exists", "effect": "NoExecute", **more}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def pod(
    name: str = "pod",
    *,
    claims: tuple[str, ...] = ("claim",),
    template: bool = False,
    status: bool = True,
    node: str = "n1",
    namespace: str = "default",
    uid: str = "",
    **metadata: object,
) -> JsonObject:
    entry = "resourceClaimTemplateName" if template else "resourceClaimName"
    spec: JsonObject = {
        "containers": [{"name": "c", "image": "i:1"}],
        "resourceClaims": [
            {"name": f"e{number}", entry: claim} for number, claim in enumerate(claims)
        ],
        "terminationGracePeriodSeconds": 30,
    }
    if node:
        spec["nodeName"] = node
    made: JsonObject = {"phase": "Running"}
    if template and status:
        made["resourceClaimStatuses"] = [
            {"name": f"e{number}", "resourceClaimName": claim}
            for number, claim in enumerate(claims)
        ]
    identity = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": identity, "spec": spec, "status": made}


def claim(
    name: str = "claim",
    *,
    devices: tuple[str, ...] = ("d0",),
    users: tuple[str, ...] = ("pod",),
    tolerations: tuple[JsonObject, ...] = (),
    owner: str = "",
    allocated: bool = True,
    namespace: str = "default",
    uid: str = "",
    resource: str = "pods",
    **metadata: object,
) -> JsonObject:
    identity: JsonObject = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        **metadata,
    }
    if owner:
        identity["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": owner, "controller": True}
        ]
    status: JsonObject = {}
    if allocated:
        results = [
            {
                "request": "r",
                "driver": DRIVER,
                "pool": "p",
                "device": device,
                "tolerations": list(tolerations),
            }
            for device in devices
        ]
        status["allocation"] = {"devices": {"results": results}}
        group = {} if resource == "pods" else {"apiGroup": "scheduling.k8s.io"}
        status["reservedFor"] = [
            {**group, "resource": resource, "name": user, "uid": f"uid-{user}"} for user in users
        ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": identity,
        "spec": {},
        "status": status,
    }


def pool_slice(
    *taints: JsonObject,
    name: str = "slice",
    generation: int = 1,
    devices: tuple[str, ...] = ("d0", "d1", "d2"),
    pool: str = "p",
    **metadata: object,
) -> JsonObject:
    """A slice whose first device has the taints."""
    listed: list[JsonObject] = [{"name": device} for device in devices]
    if taints:
        listed[0]["taints"] = list(taints)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": f"uid-{name}", **metadata},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": listed,
        },
    }


def rule(
    name: str = "rule",
    *,
    effect: str = "NoExecute",
    key: str = "bad",
    generation: int = 1,
    driver: str = DRIVER,
    device: str = "",
) -> JsonObject:
    selector: JsonObject = {"driver": driver}
    if device:
        selector["device"] = device
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": generation},
        "spec": {"deviceSelector": selector, "taint": taint(key, effect=effect)},
    }
