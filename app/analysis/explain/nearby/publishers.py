"""Pods of DaemonSets that could publish devices for their node, where nothing is published.

Evidence for such a pod is its ServiceAccount: it wrote slices that are there, or a ClusterRole that
names ResourceSlices lets it write them. Roles for all resources say nothing about a driver.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.analysis.explain import lives
from app.analysis.explain.nearby import labels
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers import daemon_nodes
from app.domain.devices.model import Slice
from app.domain.devices.nodes import Node
from app.domain.log import ObjectKey
from app.domain.objects.access import rules as access
from app.domain.objects.access.rules import AccessRule, Roles, RolesOfObjects
from app.domain.values import api_resources, counts, json_tree
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonView

_WRITES = frozenset(("create", "*"))


class _Pod(NamedTuple):
    """The pod of a DaemonSet, with its node and the user name of its account."""

    key: ObjectKey
    tree: JsonView
    node: str
    user: str
    owner: str


class _Evidence(NamedTuple):
    """The words that an account publishes slices, and the objects that show it."""

    text: str
    shown_by: tuple[ObjectKey, ...]


def silent(
    views: LiveViews, names: Sequence[str], named: Container[ObjectKey | None]
) -> Iterator[Reason]:
    """The DaemonSets whose pods on these nodes could publish devices for them, and do not.

    A slice counts for the account that wrote it, and for every account where none is known to have
    written it. Pods that are named already are left out.
    """
    if not names:
        return
    yield from _unwanted(views, names, named)
    pods = [one for one in _daemons(views, set(names)) if one.key not in named]
    if not pods:
        return
    authors = _authors(views)
    evidence = _evidence(views, {one.user for one in pods}, authors)
    served = _Served.of(views, authors)
    groups: defaultdict[tuple[str, str, str, str], list[_Pod]] = defaultdict(list)
    for one in pods:
        if one.user in evidence and not served.is_for(views, one):
            groups[one.key.namespace, one.owner, one.user, _state(one.tree)].append(one)
    for (_, _, user, state), silent_pods in [*groups.items()][:NAMES_MAX]:
        yield _reason(silent_pods, evidence[user], state)


def _unwanted(
    views: LiveViews, names: Sequence[str], named: Container[ObjectKey | None]
) -> Iterator[Reason]:
    """The DaemonSets that may publish slices and that want no pod on any of these nodes."""
    sets: defaultdict[str, list[ObjectKey]] = defaultdict(list)
    for key in views.objects.keys(*api_resources.DAEMON_SETS):
        if key not in named:
            template = core.template(views.objects.get(key) or {})
            account = core.service_account_name(template) or "default"
            sets[access.service_account(key.namespace, account)].append(key)
    nodes = [views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {} for name in names]
    count = 0
    for user, evidence in _allowed(views, sets.keys()) if sets else ():
        (namespace, account) = access.split_service_account(user) or ("", "")
        for key in sets[user]:
            template = core.template(views.objects.get(key) or {})
            refusals = [daemon_nodes.refusal(template, node) for node in nodes]
            if not all(refusals) or count == NAMES_MAX:
                continue
            count += 1
            noun = counts.plural(len(names), "node")
            text = f"DaemonSet {key.namespace}/{key.name} runs as ServiceAccount {namespace}/"
            text += f"{account}, which {evidence.text}, and wants no pod on {noun} "
            text += f"{listed(names, len(names))}: "
            of_labels = labels.unmatched(views, dict(template), names, owner="its pods")
            text += next((one.text for one in of_labels), refusals[0])
            yield Reason(text=text, about=key, is_kept=True, rests_on=(key, *evidence.shown_by))


def _daemons(views: LiveViews, names: Collection[str]) -> Iterator[_Pod]:
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key) or {}
        owner, node = meta.controller(tree), core.node_name(tree)
        if node in names and owner is not None and owner.kind == "DaemonSet":
            account = core.service_account_name(tree) or "default"
            user = access.service_account(key.namespace, account)
            yield _Pod(key, tree, node, user, owner.name)


def _authors(views: LiveViews) -> dict[ObjectKey, str]:
    """The user who wrote each slice last; the name is empty where it is no account."""
    authors: dict[ObjectKey, str] = {}
    for key in views.objects.keys(*api_resources.RESOURCE_SLICES):
        event = views.objects.event(key)
        user = "" if event is None else event.stamp.actor.user
        authors[key] = user if access.split_service_account(user) else ""
    return authors


def _evidence(
    views: LiveViews, users: Collection[str], authors: dict[ObjectKey, str]
) -> dict[str, _Evidence]:
    """The users of these that publish slices, or may."""
    evidence = dict(_allowed(views, users))
    for key, user in authors.items():
        if user in users:
            text = f"has published slices for others, such as {key.name}"
            evidence[user] = _Evidence(text, (key,))
    return evidence


def _allowed(views: LiveViews, users: Collection[str]) -> Iterator[tuple[str, _Evidence]]:
    roles = RolesOfObjects(views.objects, Roles(rules={}))
    for key in views.objects.keys(*api_resources.CLUSTER_ROLE_BINDINGS):
        tree = views.objects.get(key) or {}
        bound = {_user(one) for one in json_tree.objects(tree, "subjects")}
        role = json_tree.text(tree, "roleRef", "name")
        if not bound.isdisjoint(users) and any(map(_is_for_slices, roles.rules("", role) or ())):
            shown_by = (key, ObjectKey(*api_resources.CLUSTER_ROLES, "", role))
            text = f"may write ResourceSlices by ClusterRole {role}"
            yield from ((user, _Evidence(text, shown_by)) for user in sorted(bound & set(users)))


def _user(subject: JsonView) -> str:
    if meta.kind(subject) != "ServiceAccount":
        return ""
    return access.service_account(json_tree.text(subject, "namespace"), entries.name(subject))


def _is_for_slices(rule: AccessRule) -> bool:
    """Whether a rule lets write ResourceSlices and names them."""
    group, resource = api_resources.RESOURCE_SLICES
    return resource in rule.resources and group in rule.groups and bool(rule.verbs & _WRITES)


@dataclass(frozen=True, slots=True)
class _Served:
    """The nodes that slices are for, by author: those that a slice names, and the other slices.

    A large cluster has a slice and a pod for each node, so not every slice is asked for every pod.
    """

    named: set[tuple[str, str]]
    others: list[tuple[str, Slice]]

    @classmethod
    def of(cls, views: LiveViews, authors: dict[ObjectKey, str]) -> "_Served":
        """The nodes that all slices are for."""
        served = cls(set(), [])
        for one in views.inventory.slices():
            author = authors.get(ObjectKey(*api_resources.RESOURCE_SLICES, "", one.name), "")
            if one.node.name and not one.node.all_nodes and not one.per_device:
                served.named.add((author, one.node.name))
            else:
                served.others.append((author, one))
        return served

    def is_for(self, views: LiveViews, pod: _Pod) -> bool:
        """Whether a slice that its account may have written is, or may be, for the pod's node."""
        authors = ("", pod.user)
        if any((author, pod.node) in self.named for author in authors):
            return True
        tree = views.objects.get(ObjectKey(*api_resources.NODES, "", pod.node)) or {}
        node = Node(name=pod.node, labels=meta.labels(tree))
        return any(
            author in authors and (one.per_device or nearby_nodes.is_for_any(one, [node]))
            for author, one in self.others
        )


def _state(tree: JsonView) -> str:
    """The state of a pod that does not run; empty for one that does."""
    if waits := next(lives.container_waits(tree), ""):
        return f"fails: {waits}"
    return "has not started there" if lives.is_starting(tree) else ""


def _reason(pods: Sequence[_Pod], evidence: _Evidence, state: str) -> Reason:
    """The sentence about pods of one DaemonSet in one state."""
    first, nodes = pods[0], sorted({one.node for one in pods})
    (namespace, account) = access.split_service_account(first.user) or ("", "")
    count = len(pods)
    them = f"pod {first.key.namespace}/{first.key.name} of DaemonSet {first.owner}"
    if count > 1:
        them = f"{counts.of(count, 'pod')} of DaemonSet {first.key.namespace}/{first.owner}, such "
        them += f"as {first.key.name},"
    where = f"{counts.plural(len(nodes), 'node')} {listed(nodes, len(nodes))}"
    text = f"ServiceAccount {namespace}/{account} {evidence.text}, and none for {where}, where "
    running = f"{counts.verb(count, 'runs')} as it: look into "
    running += "its log" if count == 1 else "their logs"
    return Reason(
        text=f"{text}{them} {state or running}",
        count=count,
        about=first.key,
        is_kept=True,
        rests_on=(*evidence.shown_by, *(one.key for one in pods[:NAMES_MAX])),
    )
