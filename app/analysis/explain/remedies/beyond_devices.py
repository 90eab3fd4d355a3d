"""Changes of nodes and of a pod's spec for nodes that refuse a pod before devices are looked at.

The candidates come from the node's refusal: open the node, label it as the pod selects, drop what
the pod selects, request no more than is free, let the pod be spread less evenly, let it stand
beside other pods. Former labels of nodes and former selectors of classes are tried, too. Every
answer is proved by a whole attempt on the changed objects, so that an error on another node counts.
Where the allocator refuses the changed node, changes of claims and devices are tried behind the
first change.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from app.analysis.explain import node_answers
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.explain.remedies import helps_text, spec_changes
from app.analysis.explain.remedies.spec_changes import ChangedPair, SpecChange
from app.domain.allocation import AllocatedState
from app.domain.allocation.reasons.changes import Change
from app.domain.allocation.reasons.counterfactual import Help
from app.domain.controllers.plan import MergingViews
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.controllers.scheduling.scheduling_cycle import attempt
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.devices.inventory import Inventory
from app.domain.log import Event, ObjectKey, Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondDevices:
    """The helps beyond devices, and the nodes and the sorts of changes that were tried."""

    helps: tuple[Help, ...] = ()
    nodes: tuple[str, ...] = ()
    sorts: tuple[str, ...] = ()


class _ChangedObjects:
    """The objects with one of them changed."""

    def __init__(self, base: ObjectsReader, changed: ObjectKey, tree: JsonObject) -> None:
        self._base = base
        self._changed = changed
        self._tree = tree

    @property
    def revision(self) -> Revision:
        return self._base.revision

    def get(self, key: ObjectKey) -> JsonObject | None:
        return self._tree if key == self._changed else self._base.get(key)

    def event(self, key: ObjectKey) -> Event | None:
        return self._base.event(key)

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterator[ObjectKey]:
        return iter(self._base.keys(group, resource, namespace))

    def dependents(self, owner_uid: Uid) -> Iterator[ObjectKey]:
        return iter(self._base.dependents(owner_uid))

    def by_uid(self, uid: Uid) -> ObjectKey | None:
        return self._base.by_uid(uid)


@dataclass(frozen=True, slots=True)
class _ChangedViews:
    """The views with one object changed."""

    base: MergingViews
    objects: ObjectsReader

    @property
    def inventory(self) -> Inventory:
        return self.base.inventory

    @property
    def allocated(self) -> AllocatedState:
        return self.base.allocated

    def may_have_remerged(self, revision: Revision) -> bool:
        return self.base.may_have_remerged(revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecSearch:
    """The search for changes beyond devices, from views that do not change meanwhile.

    `nodes` is an index of them; a search changes a node in it and puts it back. `former` are
    objects with a part as it was before a write that may be to blame, each with its key.
    """

    rules: SchedulerRules
    views: MergingViews
    nodes: NodeIndex
    pod: JsonObject
    now: Instant
    former: Sequence[tuple[ObjectKey, SpecChange]] = ()

    def run(
        self,
        answers: Sequence[NodeAnswer],
        changes_max: int,
        *,
        nodes_max: int,
        tries_max: int,
    ) -> Generator[None, None, BeyondDevices]:
        """The helps with the fewest changes, of nodes that refuse the pod before any device.

        Nodes that have devices for the pod come first. Of each kind of change the first is given.
        """
        refusing = [one for one in answers if one.text and one.answer is None and not one.elsewhere]
        refusing.sort(key=lambda one: not one.has_devices)
        helps: list[Help] = []
        tried: dict[str, None] = {}
        changes: dict[Change, None] = {}
        tries_left = tries_max
        fewest = changes_max
        for key, change in self.former:
            yield
            changes.setdefault(change)
            if node := self._node_after(key, change):
                helps.append(Help(node=node, changes=(change,)))
                tried[node] = None
                fewest = 1
        for one in refusing[:nodes_max]:
            if tries_left <= 0:
                break
            tree = self.views.objects.get(ObjectKey(*api_resources.NODES, "", one.node))
            if tree is None:
                continue
            known = {_kinds(help_) for help_ in helps}
            trying = self._on_node(ChangedPair(pod=self.pod, node=tree), fewest, known, changes)
            for result in trying:
                yield
                tried[one.node] = None
                tries_left -= 1
                if result is not None:
                    helps.append(result)
                if tries_left <= 0:
                    break
            fewest = min((len(help_.changes) for help_ in helps), default=fewest)
            helps = [help_ for help_ in helps if len(help_.changes) == fewest]
        sorts = tuple(helps_text.sorts(changes))
        return BeyondDevices(helps=tuple(helps), nodes=tuple(tried), sorts=sorts)

    def _on_node(
        self,
        start: ChangedPair,
        changes_max: int,
        known: set[tuple[str, ...]],
        changes: dict[Change, None],
    ) -> Iterator[Help | None]:
        """The result of each try on one node: a help, or None; sets of fewer changes first."""
        frontier = [start]
        is_helped = False
        for count in range(1, changes_max + 1):
            following: list[ChangedPair] = []
            for state in frontier:
                for change in self._candidates(state):
                    changes.setdefault(change)
                    further = state.with_change(change)
                    sort = tuple(sorted(one.kind for one in further.changes))
                    if sort in known:
                        continue
                    answer = self._answer(further)
                    if not answer.text and self._is_placed(further):
                        known.add(sort)
                        is_helped = True
                        yield Help(node=answer.node, changes=further.changes)
                        continue
                    following.append(further)
                    yield None
                    if answer.answer is None or count == changes_max:
                        continue
                    for one in _behind(further, answer, changes_max - count):
                        is_helped = is_helped or one is not None
                        yield one
            if is_helped:
                return
            frontier = following

    def _answer(self, state: ChangedPair) -> NodeAnswer:
        """The answer of the changed node to the changed pod."""
        name = meta.name(state.node)
        with _Put(self.nodes, self.views, state.node):
            given = node_answers.answers(
                self.rules, self._views(state), self.nodes, state.pod, now=self.now, node=name
            )
            return next(given)

    def _is_placed(self, state: ChangedPair) -> bool:
        """Whether the attempt of the scheduler, over all nodes, finds a node for the pod."""
        pod = pod_spec.read(state.pod)
        with _Put(self.nodes, self.views, state.node):
            made = attempt.attempt(
                self.rules, self._views(state), self.nodes, Verdicts(), pod, start=0, now=self.now
            )
        return bool(made.node)

    def _node_after(self, key: ObjectKey, change: SpecChange) -> str:
        """The node that the attempt of the scheduler finds after one change; empty for none."""
        views = _ChangedViews(self.views, _ChangedObjects(self.views.objects, key, change.tree))
        pod = pod_spec.read(self.pod)
        if key[:2] != api_resources.NODES:
            made = attempt.attempt(
                self.rules, views, self.nodes, Verdicts(), pod, start=0, now=self.now
            )
            return made.node or ""
        with _Put(self.nodes, self.views, change.tree):
            made = attempt.attempt(
                self.rules, views, self.nodes, Verdicts(), pod, start=0, now=self.now
            )
        return made.node or ""

    def _views(self, state: ChangedPair) -> MergingViews:
        if state.pod is self.pod:
            return self.views
        place = (meta.namespace(self.pod), meta.name(self.pod))
        key = ObjectKey(*api_resources.PODS, *place)
        return _ChangedViews(self.views, _ChangedObjects(self.views.objects, key, state.pod))

    def _candidates(self, state: ChangedPair) -> Iterator[SpecChange]:
        """The changes that may remove the refusal of the node, the smallest of each sort."""
        pod = pod_spec.read(state.pod)
        with _Put(self.nodes, self.views, state.node):
            info = self.nodes.get(meta.name(state.node))
            assert info is not None, "it was put"
            refusal = filters.check_node(pod, info)
            text = self._answer(state).text if refusal is None else ""
        if refusal is None:
            yield from spec_changes.beside_pods(state.pod, text)
        else:
            yield from spec_changes.on_node(state, pod, info, refusal)


def _behind(state: ChangedPair, answer: NodeAnswer, changes_max: int) -> Iterator[Help | None]:
    """The results of changes of claims and devices on the changed node; None for each try."""
    trying = answer.looking_for_help(changes_max=changes_max)
    while True:
        try:
            next(trying)
        except StopIteration as done:
            for one in done.value:
                yield replace(one, changes=(*state.changes, *one.changes))
            return
        yield None


class _Put:
    """A node in the index as it is changed, for the time of a `with`."""

    def __init__(self, nodes: NodeIndex, views: MergingViews, tree: JsonObject) -> None:
        self._nodes = nodes
        self._before = views.objects.get(ObjectKey(*api_resources.NODES, "", meta.name(tree)))
        self._tree = tree

    def __enter__(self) -> None:
        if self._tree is not self._before:
            self._nodes.put(self._tree)

    def __exit__(self, *_: object) -> None:
        if self._before is not None and self._tree is not self._before:
            self._nodes.put(self._before)


def _kinds(help_: Help) -> tuple[str, ...]:
    return tuple(sorted(one.kind for one in help_.changes if isinstance(one, SpecChange)))
