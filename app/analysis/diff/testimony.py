"""The testimony of one side about a pod at one moment: its nodes' reasons, and the facts.

Questions are answered in the order of their revisions while the side's events are folded once. The
functions are generators that yield after each step.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from app.analysis.diff.sides import DiffBounds, Side
from app.analysis.explain import node_answers, scores, untried
from app.analysis.explain.node_reasons import NodeReason, node_reason
from app.analysis.explain.pods import Steps
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key as key_of_claim
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.devices import pools, taints
from app.domain.devices.taints import TaintRule
from app.domain.errors import InputError
from app.domain.log import ObjectKey, Revision
from app.domain.log.chain import canonical_json
from app.domain.values import api_resources, identifiers
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

STEP_MAX = 512
"""The number of events folded between two yields to other tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to a side: about this pod as of a revision, its nodes and these devices.

    Without `asks_nodes` only the facts are collected. The `nodes` are always asked, others up to a
    bound.
    """

    number: int
    revision: Revision
    pod: ObjectKey | None
    nodes: tuple[str, ...] = ()
    devices: frozenset[str] = frozenset()
    asks_nodes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The parts of a node that decisions read, and the uids of the pods bound to it."""

    content: bytes
    pods: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """A device: its holders, its published content, and its taints.

    `holders` are uids of pods, and keys of claims that no pod uses. `taints` are pairs of text and
    rule, with an empty rule for taints of the driver, as the scheduler sees them. `rules` are all
    rules that select the device, with their taint's text, as the eviction controller sees them.
    """

    holders: frozenset[str]
    slice: str
    content: bytes
    taints: frozenset[tuple[str, str]]
    rules: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """A pool: its newest generation, why it cannot be used, and the holders of its devices."""

    generation: int
    problem: str
    slices: frozenset[str]
    holders: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """A claim of a pod: whether it exists, its spec, and the pods that already use it.

    `template` names the ResourceClaimTemplate from which it was made, if any.
    """

    key: ObjectKey
    is_there: bool
    content: bytes = b""
    users: frozenset[str] = frozenset()
    template: str = ""

    @property
    def origin(self) -> ObjectKey:
        """The object that says what the claim requests: its template, or the claim itself."""
        if not self.template:
            return self.key
        templates = api_resources.RESOURCE_CLAIM_TEMPLATES
        return ObjectKey(*templates, self.key.namespace, self.template)


@dataclass(slots=True, kw_only=True)
class Testimony:
    """The answers of a side. `text` says why no node was asked; empty when nodes were asked.

    `scores` are the totals of the nodes that fit, if all nodes were asked. `claims` are the pod's
    claims by entry, `classes` the specs of the DeviceClasses that they name (empty for one that
    does not exist). `node_names` are all nodes, if none was asked.
    """

    revision: Revision
    is_there: bool = False
    text: str = ""
    nodes: dict[str, NodeReason] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    node_facts: dict[str, NodeFacts] = field(default_factory=dict)
    devices: dict[str, DeviceFacts] = field(default_factory=dict)
    pools: dict[str, PoolFacts] = field(default_factory=dict)
    claims: dict[str, ClaimFacts] = field(default_factory=dict)
    classes: dict[str, bytes] = field(default_factory=dict)
    node_names: frozenset[str] = frozenset()

    def usable(self, device: str) -> DeviceFacts | None:
        """A device that is published in a pool that can be used; None for others."""
        return None if self.problem(device) else self.devices.get(device)

    def problem(self, device: str) -> str:
        """The problem of the pool of a device; empty for usable pools, and unknown ones."""
        pool = self.pools.get(pool_of(device))
        return "" if pool is None else pool.problem

    def renamed(self, names: Mapping[str, str]) -> "Testimony":
        """The same answers with these names in place of the uids of pods."""

        def other(uids: frozenset[str]) -> frozenset[str]:
            return frozenset(names.get(uid, uid) for uid in uids)

        return replace(
            self,
            node_facts={n: replace(f, pods=other(f.pods)) for n, f in self.node_facts.items()},
            devices={n: replace(f, holders=other(f.holders)) for n, f in self.devices.items()},
            pools={n: replace(f, holders=other(f.holders)) for n, f in self.pools.items()},
            claims={n: replace(f, users=other(f.users)) for n, f in self.claims.items()},
        )


def collect(
    side: Side, queries: Iterable[Query], bounds: DiffBounds
) -> Steps[dict[int, Testimony]]:
    """Collects the answers of a side, by the number of the query."""
    views = LiveViews(side.profile)
    for event in side.start:
        views.fold(event, side.created.get(event.key, Revision(0)))
    views.show_as_of(side.common)
    rules = side.rules
    testimonies: dict[int, Testimony] = {}
    events = iter(side.events)
    following = next(events, None)
    for query in sorted(queries, key=lambda query: (query.revision, query.number)):
        number = 0
        while following is not None and following.revision <= query.revision:
            views.fold(following)
            following = next(events, None)
            number += 1
            if number % STEP_MAX == 0:
                yield
        testimonies[query.number] = yield from _answer(views, rules, query, bounds)
        yield
    return testimonies


def _answer(
    views: LiveViews, rules: SchedulerRules, query: Query, bounds: DiffBounds
) -> Steps[Testimony]:
    testimony = Testimony(revision=query.revision)
    tree = None if query.pod is None else views.objects.get(query.pod)
    testimony.is_there = tree is not None
    if tree is not None and not core.node_name(tree):
        testimony.claims = dict(_claims(views, tree))
        testimony.classes = dict(_classes(views, testimony.claims.values()))
        if query.asks_nodes:
            yield from _ask(views, rules, tree, query, bounds, testimony)
    elif tree is not None:
        testimony.text = f"it is bound to node {core.node_name(tree)} already"
    nodes = {*query.nodes, *testimony.nodes}
    testimony.node_facts = dict(_node_facts(views, nodes))
    devices = set(query.devices)
    unusable: set[PoolId] = set()
    for reason in testimony.nodes.values():
        devices |= {device.device for _, request in reason.requests() for device in request.devices}
        if reason.explained is not None:
            unusable |= {identifiers.parse_pool(pool) for pool, _ in reason.explained.pools}
    testimony.devices, testimony.pools = _device_facts(views, devices, unusable)
    return testimony


def _ask(
    views: LiveViews,
    rules: SchedulerRules,
    tree: JsonObject,
    query: Query,
    bounds: DiffBounds,
    testimony: Testimony,
) -> Steps[None]:
    testimony.text = untried.cause(views, tree, rules)
    if testimony.text:
        testimony.node_names = _node_names(views)
        return
    count = sum(1 for _ in views.objects.keys(*api_resources.NODES))
    names: Sequence[str] = ("",) if count <= bounds.nodes_max else query.nodes
    for node in names:
        try:
            answers = node_answers.ask_nodes(rules, views, tree, now=Instant(0), node=node)
            for answer in answers:
                if answer is not None:
                    testimony.nodes[answer.node] = node_reason(answer, effort_steps=0)
                yield
        except ClaimsNotReady as problem:
            testimony.text = str(problem)
            testimony.node_names = _node_names(views)
            return
    if count <= bounds.nodes_max:
        testimony.scores = yield from scores.by_node(rules, views, tree, now=Instant(0))


def _node_names(views: LiveViews) -> frozenset[str]:
    return frozenset(key.name for key in views.objects.keys(*api_resources.NODES))


def _claims(views: LiveViews, tree: JsonObject) -> Iterator[tuple[str, ClaimFacts]]:
    pod = pods.facts(tree)
    for entry in pods.named_claims(pod):
        key = key_of_claim(pod.namespace, entry.name or "")
        claim = views.objects.get(key)
        users: frozenset[str] = frozenset()
        if claim is not None and dra.allocation(claim) is not None:
            users = frozenset(each.uid for each in dra.consumers(claim))
        yield (
            entry.entry.name,
            ClaimFacts(
                key=key,
                is_there=claim is not None,
                content=b"" if claim is None else canonical_json(meta.spec(claim)),
                users=users,
                template=entry.entry.template,
            ),
        )


def _classes(views: LiveViews, claims: Iterable[ClaimFacts]) -> Iterator[tuple[str, bytes]]:
    """The DeviceClasses that claims name."""
    for claim in claims:
        for request in dra.requests(views.objects.get(claim.key) or {}):
            asks = (request.exactly, *request.first_available)
            for name in (ask.device_class_name for ask in asks if ask is not None):
                tree = views.objects.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", name))
                yield name, b"" if tree is None else canonical_json(meta.spec(tree))


def _node_facts(views: LiveViews, names: Iterable[str]) -> Iterator[tuple[str, NodeFacts]]:
    wanted = set(names)
    bound: dict[str, set[str]] = {name: set() for name in wanted}
    for key in views.objects.keys(*api_resources.PODS) if wanted else ():
        tree = views.objects.get(key) or {}
        node = core.node_name(tree)
        if node in wanted and not core.is_finished(tree):
            bound[node].add(meta.uid(tree))
    for name in sorted(wanted):
        node_tree = views.objects.get(ObjectKey(*api_resources.NODES, "", name))
        content = b""
        if node_tree is not None:
            ready = [(each.type, each.status) for each in meta.conditions(node_tree)]
            read = [meta.labels(node_tree), meta.spec(node_tree), core.allocatable(node_tree)]
            content = canonical_json([*read, ready])
        yield name, NodeFacts(content=content, pods=frozenset(bound[name]))


def _device_facts(
    views: LiveViews, names: Iterable[str], others: Set[PoolId]
) -> tuple[dict[str, DeviceFacts], dict[str, PoolFacts]]:
    """The facts of devices, and of their pools and `others`."""
    wanted = {identifiers.parse_device(name) for name in names}
    places = {(driver, pool) for driver, pool, _ in wanted} | others
    users = _users(views)
    rules = list(_rules(views))
    devices: dict[str, DeviceFacts] = {}
    facts_of_pools: dict[str, PoolFacts] = {}
    for pool in sorted(places):
        newest = pools.newest(views.inventory.slices_of(pool))
        holders: set[str] = set()
        for published in newest:
            for device in published.devices:
                held = _holders(views, device.id, users)
                holders |= held
                if device.id in wanted:
                    devices["/".join(device.id)] = DeviceFacts(
                        holders=held,
                        slice=published.key,
                        content=canonical_json(device.tree),
                        taints=frozenset((taint.text, taint.rule) for taint in device.taints),
                        rules=frozenset(
                            (rule.taint.text, rule.name)
                            for rule in rules
                            if rule.matches(device.id, without_selector=False)
                        ),
                    )
        surveyed = views.inventory.pool(pool)
        facts_of_pools["/".join(pool)] = PoolFacts(
            generation=max((each.generation for each in newest), default=0),
            problem="" if surveyed is None else surveyed.problem,
            slices=frozenset(each.key for each in views.inventory.slices_of(pool)),
            holders=frozenset(holders),
        )
    return devices, facts_of_pools


def _rules(views: LiveViews) -> Iterator[TaintRule]:
    for key in views.objects.keys(*api_resources.DEVICE_TAINT_RULES):
        try:
            yield taints.rule_of(views.objects.get(key) or {})
        except InputError:
            # Like in the views, an unreadable rule concerns no device.
            continue


def _users(views: LiveViews) -> Mapping[str, frozenset[str]]:
    """The users of each claim by the claim's name: uids of pods, else the claim itself."""
    users_of: dict[str, frozenset[str]] = {}
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS):
        tree = views.objects.get(key) or {}
        users: set[str] = {each.uid for each in dra.consumers(tree)}
        users |= {owner.uid for owner in meta.owners(tree) if owner.kind == "Pod"}
        users_of[f"{key.namespace}/{key.name}"] = frozenset(users) or frozenset((str(key),))
    return users_of


def _holders(
    views: LiveViews, device: DeviceId, users: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    names = views.allocated.holders(device)
    return frozenset(uid for name in names for uid in users.get(name, frozenset((name,))))


def pool_of(device: str) -> str:
    """`driver/pool` of a device."""
    return device.rpartition("/")[0]


def is_tie(sides: Mapping[str, Testimony], nodes: Sequence[str]) -> bool:
    """Whether several nodes have equal total scores, which both sides know."""
    totals = [{side.scores.get(node) for node in nodes} for side in sides.values()]
    return len(nodes) > 1 and all(len(each) == 1 and None not in each for each in totals)
