"""The causes of waiting pods, for findings: those of devices from recorded or repeated attempts,
and the taints, cordons and allocated claims that close nodes to them."""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from app.analysis import scheduler_messages
from app.analysis.explain import attempts as attempt_reasons
from app.analysis.explain import circumstances, node_answers, preemption, untried, waits
from app.analysis.explain.hardware import selected
from app.analysis.explain.nearby import drivers as drivers_nearby
from app.analysis.explain.nearby import extended, outcomes, publishers, selector_errors
from app.analysis.explain.nearby import nodes as nodes_nearby
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.explain.node_reasons import NodeReason, node_reason
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.findings import devices, obstacles
from app.analysis.findings.obstacles import Obstacles
from app.analysis.findings.outgrown import LostDevices
from app.analysis.findings.report import Finding, FindingKind, Findings, Subject
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.domain.allocation.allocator import INVALID_POOLS
from app.domain.allocation.reasons import causes
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.scheduling.framework import filters
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.devices.model import Device
from app.domain.devices.pools import newest
from app.domain.log import DECISION, ObjectKey
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, decision_body, meta
from app.domain.values.fields.decision_body import DecisionSummary
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.explaining import (
    absent,
    closed_nodes,
    former_circumstances,
    pods,
    published,
    selections,
    templates,
    unfinished,
)
from app.service.explaining.evidence import ExplainedMoment

_OF_ATTEMPTS = (devices.REFUSED, waits.NOT_YET)
"""Words of findings about pods whose attempts are read or made again."""

_BY_WRITES = frozenset(
    kind.value for kind in (CauseKind.CAPACITY, CauseKind.COUNTERS, CauseKind.TAINT)
)
"""The causes behind which may be a write about the devices, which the attempt does not name."""

_HELD_MAX = 100
"""Allocated devices that are looked at to name the holders of those that a pod waits for."""

_DECISIONS_MAX = 10
"""Decisions about objects of a pod's name that are read to find its last attempt."""


async def with_causes(evidence: ExplainedMoment, answer: Findings, pods_max: int) -> Findings:
    """The findings; those about pods that no node takes name devices, taints and claims as causes.

    The newest pods of each finding are looked at: at most `pods_max` of those whose attempts are
    read, and as many others. The newest pod of each finding comes before the second of any.
    """
    evidence.lacks = uncertainty.unseen(answer.doubts)
    attempts, closed = _Attempts(evidence), Obstacles(evidence.views)
    is_local, lost = devices.is_local(evidence.views), LostDevices(evidence.views)
    shares = _shares(answer.items, pods_max)
    items: list[Finding] = []
    for number, item in enumerate(answer.items):
        is_about_devices = devices.REFUSED in item.text
        if item.kind is not FindingKind.WAITING_PODS or not item.present:
            items.append(item)
            continue
        causes: dict[tuple[str, ...], Subject] = {}
        explained = 0
        for subject in item.objects[: shares[number]]:
            pod = evidence.views.objects.get(subject.key)
            if pod is None or core.needs_no_node(pod) or subject.alike is None:
                continue
            changed = await _beside_nodes(evidence, subject.key, pod, item.text, lost)
            shut = await closed_nodes.with_authors(evidence, pod, closed.closings(item.text, pod))
            lines = (
                *(each.text for one in shut for each in (one, *one.children)),
                *closed.lines(item.text, pod),
                *(reason.line if reason.issues else reason.text for reason in changed),
            )
            summary = None
            if waits.NOT_YET in item.text:
                lines = (*await _unready(evidence, pod), *lines)
                lines = (*lines, *await attempts.failed(subject.key))
            if is_about_devices:
                summary = await attempts.last(subject.key, pod)
            if summary is not None:
                rewritten = _are_excluded(summary)
                lines = (*(attempts.differing(pod) if rewritten else ()), *lines)
                if subject is item.objects[0]:
                    changed = await selections.rewritten(evidence, pod) if rewritten else []
                    changed += await attempts.former(pod, summary)
                    lines = (*lines, *(reason.text for reason in changed))
                of_devices = devices.lines(summary, evidence.views, pod, is_local=is_local)
                serving = extended.rivals(evidence.views, pod)
                lines = (*serving, *of_devices, *_held(evidence, summary, pod), *lines)
                lines = tuple(dict.fromkeys(lines))
                if obstacles.are_other(item.text):
                    lines = (*await attempts.elsewhere(pod, item.text), *lines)
            elif not is_about_devices and _is_counted(pod) and obstacles.are_other(item.text):
                lines = (*lines, *await attempts.elsewhere(pod, item.text))
            if subject is item.objects[0]:
                lines = (*lines, *await attempts.gone_nodes(pod))
            if lines:
                causes.setdefault(lines, subject)
                is_known = summary is not None or not is_about_devices
                explained += 1 + subject.alike if is_known else 0
        items.append(replace(item, causes=_together(causes, are_all=explained == item.present)))
    return replace(answer, items=tuple(items))


async def _beside_nodes(
    evidence: ExplainedMoment, key: ObjectKey, pod: JsonObject, refusal: str, lost: LostDevices
) -> list[Reason]:
    """The reasons of a waiting pod that no node has to be asked for."""
    changed = [*selections.patched_away(evidence, pod)][:NAMES_MAX]
    changed += _in_vain(evidence, refusal, pod)
    changed += selector_errors.corrections(evidence.views, refusal)
    changed += await published.under_claims(evidence, pod)
    if devices.REFUSED in refusal or selector_errors.is_of_selector(refusal):
        changed += await selections.reclassed(evidence, pod, lost)
        changed += await templates.replaced(evidence, pod)
        changed += published.passed_over(evidence, pod)
        changed += _of_drivers(evidence, pod)
    elif untried.cause(evidence.views, pod, evidence.rules):
        changed += await _unasked(evidence, pod)
        changed += await pods.gates(evidence, key, pod)
    elif scheduler_messages.lacking(said := refusal.partition(": ")[2]):
        changed += await absent.reasons(evidence, pod, [said])
    if INVALID_POOLS in refusal:
        changed += published.invalid(evidence.views)
        changed += published.doubled(evidence, evidence.views.inventory.pool_ids())
    if obstacles.ELSEWHERE in refusal:
        changed += await closed_nodes.unclaimed(evidence, pod)
    changed += await _but_for_volumes(evidence, key, pod)
    if scheduler_messages.lacking(refusal.partition(": ")[2]):
        changed += preemption.declined(evidence.views.objects, pod)
    return changed


def _in_vain(evidence: ExplainedMoment, refusal: str, pod: JsonObject) -> Iterator[Reason]:
    """The claims of a pod because of which scoring or binding fails each time."""
    if _FAILS_TO_SCORE in refusal:
        # Pods are only scored where several nodes fit.
        yield from outcomes.unscored(evidence.views, pod, evidence.rules, fitting=2)
    elif _FAILS in refusal:
        yield from waits.repeated(pod)
        yield from outcomes.full_claims(evidence.views, pod)
        yield from outcomes.untimed_claims(evidence.views, pod, evidence.rules)


_FAILS, _FAILS_TO_SCORE = 'plugin "DynamicResources"', "running Score plugins"
"""The scheduler's words for errors of a plug-in and of scoring."""


def _of_drivers(evidence: ExplainedMoment, pod: JsonObject) -> Iterator[Reason]:
    """The drivers without slices that classes and requests of a pod select."""
    for reason in drivers_nearby.unpublished(evidence.views, pod):
        if reason.about is not None and evidence.sight.sees_key(reason.about):
            yield reason


async def _unready(evidence: ExplainedMoment, pod: JsonObject) -> Iterator[str]:
    """The conditions that devices of a pod still lack, device by device."""
    now, timeout = await evidence.now(), evidence.rules.binding_timeout
    _, lacking = waits.cause(evidence.views, pod, now, timeout)
    return (line.text for claim in lacking for line in claim.children[:NAMES_MAX])


async def _but_for_volumes(
    evidence: ExplainedMoment, key: ObjectKey, pod: JsonObject
) -> tuple[Reason, ...]:
    """The nodes that would take a pod of a recorded scheduler, were it not for its volumes."""
    placed = meta.condition(pod, condition_types.POD_SCHEDULED)
    if placed is None or not scheduler_messages.about_volumes(placed.message):
        return ()
    now = await evidence.now()
    reasons = await closed_nodes.but_for_volumes(evidence, key, evidence.views, now)
    return Reason(text="", children=(*reasons,)).seen_by(evidence.sight.sees_key).children


async def _unasked(evidence: ExplainedMoment, pod: JsonObject) -> list[Reason]:
    """The reasons of a pod about which no node is asked: similar names, and deletions."""
    near = Reason(text="", children=(*untried.nearby(evidence.views, pod),))
    seen = near.seen_by(evidence.sight.sees_key).as_recorded(evidence.lacks)
    return [*seen.children, *await absent.reasons(evidence, pod)]


def _is_counted(pod: JsonObject) -> bool:
    """Whether the condition of a pod counts the nodes that refuse it."""
    placed = meta.condition(pod, condition_types.POD_SCHEDULED)
    message = "" if placed is None or placed.status != "False" else placed.message
    return any(scheduler_messages.reasons(message))


def _are_excluded(summary: DecisionSummary) -> bool:
    """Whether selectors exclude devices of a pod's requests."""
    kinds = (CauseKind.SELECTOR.value, CauseKind.SELECTOR_ERROR.value)
    return any(each.cause in kinds for each in summary.causes)


def _held(evidence: ExplainedMoment, summary: DecisionSummary, pod: JsonObject) -> Iterator[str]:
    """The holders of the devices that a pod waits for, where these are few."""
    count = sum(each.devices for each in summary.causes if each.cause == CauseKind.ALLOCATED.value)
    if not count or count > NAMES_MAX:
        return
    views, wishes = evidence.views, [*selections.requests_of(evidence, pod)]
    holders: dict[str, str] = {}
    for looked_at, device in enumerate(_allocated(views)):
        if any(wish.matches(device) for wish in wishes):
            for holder in views.allocated.holders(device.id):
                holders.setdefault(holder, "/".join(device.id))
        if looked_at == _HELD_MAX or len(holders) > NAMES_MAX:
            return
    yield from obstacles.held(views, pod, holders)


def _allocated(views: LiveViews) -> Iterator[Device]:
    for place in views.inventory.pool_ids():
        for one in newest(views.inventory.slices_of(place)):
            yield from (each for each in one.devices if views.allocated.is_allocated(each.id))


def _shares(items: Sequence[Finding], pods_max: int) -> list[int]:
    """The number of pods of each finding that are looked at, one of each finding at a time."""
    shares: dict[int, int] = {}
    for reads_attempts in (True, False):
        asking = [
            number
            for number, item in enumerate(items)
            if item.kind is FindingKind.WAITING_PODS
            and item.present
            and any(words in item.text for words in _OF_ATTEMPTS) is reads_attempts
        ]
        sizes = [_looked_at(items[number]) for number in asking]
        shares |= in_turn(asking, sizes, pods_max)
    return [shares.get(number, 0) for number in range(len(items))]


def in_turn(asking: Sequence[int], sizes: Sequence[int], pods_max: int) -> Counter[int]:
    """The shares of the findings with these numbers in the pods, one of each at a time."""
    turns = (
        number
        for turn in range(max(sizes, default=0))
        for number, size in zip(asking, sizes, strict=True)
        if turn < size
    )
    return Counter(islice(turns, pods_max))


def _looked_at(item: Finding) -> int:
    """The number of the first pods of a finding that are not like one before."""
    return sum(subject.alike is not None for subject in item.objects)


def _together(causes: Mapping[tuple[str, ...], Subject], *, are_all: bool) -> tuple[str, ...]:
    """The lines of all pods; each line begins with its pods if pods may have different causes.

    Pods that ask for the same are counted with the one that was looked at.

    `are_all` is whether the lines of all waiting pods of the finding are known.
    """
    if len(causes) == 1 and are_all:
        return next(iter(causes))
    pods_of: dict[str, list[str]] = {}
    for lines, pod in causes.items():
        for line in lines:
            like = f" and {pod.alike} like it" if pod.alike else ""
            pods_of.setdefault(line, []).append(f"{pod.namespace}/{pod.name}{like}")
    return tuple(f"{listed(names, len(names))}: {line}" for line, names in pods_of.items())


def _first_answers(
    evidence: ExplainedMoment, views: LiveViews, index: NodeIndex, pod: JsonObject, now: Instant
) -> Generator[None, None, list[NodeReason]]:
    """The answers of the first nodes to a pod; empty when its claims cannot be allocated."""
    nodes: list[NodeReason] = []
    try:
        answers = node_answers.answers(evidence.rules, views, index, pod, now=now)
        for answer in islice(answers, evidence.bounds.cause_nodes_max):
            nodes.append(node_reason(answer, effort_steps=0))
            yield
    except ClaimsNotReady:
        return []
    return nodes


class _Attempts:
    """The last attempts for pods. They are repeated if the history has no recorded decisions."""

    def __init__(self, evidence: ExplainedMoment) -> None:
        self._evidence = evidence
        self._nodes: NodeIndex | None = None
        self._are_slices_gone: bool | None = None
        self._are_slices_changed: bool | None = None
        self._askable = evidence.bounds.refusal_nodes_max
        self._differing: dict[str, tuple[str, ...]] = {}

    def differing(self, pod: JsonObject) -> tuple[str, ...]:
        """The values by which a pod's requests select no device; many pods ask for the same."""
        claims = selections.open_claims(self._evidence, pod)
        return tuple(line for claim in claims for line in self._differing_of(claim))

    def _differing_of(self, claim: JsonObject) -> tuple[str, ...]:
        wanted = repr(meta.spec(claim))
        if wanted not in self._differing:
            self._differing[wanted] = tuple(selected.differing(self._evidence.views, claim))
        return self._differing[wanted]

    async def last(self, key: ObjectKey, pod: JsonObject) -> DecisionSummary | None:
        """The summary of causes of the last attempt for a pod; None if it is not known."""
        evidence = self._evidence
        decision_key = DECISION._replace(namespace=key.namespace, name=key.name)
        events = await evidence.log.read_object(
            evidence.info.id, decision_key, until=evidence.views.revision, limit=_DECISIONS_MAX
        )
        for event in events:
            body = decision_body.read(event.object)
            if body.resource == key.resource and body.controller == "scheduling":
                return decision_body.summary_of(event.object)
        if not evidence.info.is_recorded:
            return None
        return await self._made_again(pod)

    async def elsewhere(self, pod: JsonObject, refusal: str) -> tuple[str, ...]:
        """The nodes whose devices would do for a pod, and the reasons for which they refuse it.

        Left out are reasons that are not among those of the finding, `refusal`, and nodes that the
        pod is not for, such as those of other pods of its DaemonSet.
        In one answer no more nodes are asked for all pods together than for one alone.
        """
        evidence, nodes = self._evidence, await self._index()
        if nodes is None or len(nodes) > self._askable:
            return ()
        self._askable -= len(nodes)
        now = await evidence.now()
        answers = await evidence.run(
            lambda seen: node_answers.with_devices(evidence.rules, seen, nodes, pod, now)
        )
        refusing: dict[str, list[NodeAnswer]] = {}
        for each in answers:
            reasons = each.text.partition(node_answers.KEPT)[0].split(", ")
            if filters.NOT_NAMED.reasons[0] in reasons or not all(
                one in refusal for one in reasons
            ):
                continue
            refusing.setdefault(each.text, []).append(each)
        sees, lines = evidence.sight.sees_key, list[str]()
        for text, having in [*refusing.items()][:NAMES_MAX]:
            lines += obstacles.elsewhere(evidence.views, pod, text, having, sees)
            if text in filters.AFFINITY.reasons:
                names = [one.node for one in having]
                former = await former_circumstances.unchosen(evidence, pod, names)
                lines += [reason.text for reason in former]
        return tuple(lines)

    async def former(self, pod: JsonObject, summary: DecisionSummary) -> list[Reason]:
        """The writes that took devices from the first nodes, and what else keeps these from it."""
        evidence = self._evidence
        is_by_write = any(
            each.cause in _BY_WRITES or each.about.endswith(causes.MISSING)
            for each in summary.causes
        )
        if not evidence.views.inventory.pool_ids():
            if "resourceslices" in evidence.lacks:
                return []
            none = Reason(text=circumstances.NO_SLICES)
            failing = [*nodes_nearby.failing(evidence.views)]
            everywhere = [key.name for key in evidence.views.objects.keys(*api_resources.NODES)]
            nodes = await self._answers_to(pod) if await self._is_any_slice_gone() else []
            gone = await pods.losses(evidence, pod, nodes)
            return [none, *gone, *failing, *self._silent(everywhere, failing)]
        may_lack = self._is_a_node_unserved() or any(nodes_nearby.selecting(evidence.views))
        may_lack = may_lack or bool(summary.pools) or await self._is_any_slice_changed()
        if not is_by_write and not may_lack:
            return []
        nodes = await self._answers_to(pod)
        if not nodes:
            return []
        blind = circumstances.without_devices(nodes)
        unserved = [*nodes_nearby.without_driver(evidence.views, blind)]
        losses = await pods.losses(evidence, pod, nodes)
        unready = await unfinished.reasons(evidence, nodes)
        return [
            *losses,
            *(line for each in unready for line in (each, *each.children)),
            *await published.taken_away(evidence, pod, nodes, losses),
            *await selections.unaligned(evidence, nodes),
            *(line for each in unserved for line in (each, *each.children)),
            *self._silent(blind, [child for each in unserved for child in each.children]),
            *await closed_nodes.to_drivers(evidence, blind),
            *circumstances.beside(evidence.views, pod, nodes),
        ]

    async def _answers_to(self, pod: JsonObject) -> list[NodeReason]:
        """The answers of the first nodes; empty where there are more nodes than are asked."""
        evidence, index = self._evidence, await self._index()
        if index is None:
            return []
        now = await evidence.now()
        return await evidence.run(lambda seen: _first_answers(evidence, seen, index, pod, now))

    def _silent(self, names: Sequence[str], named: Sequence[Reason]) -> tuple[Reason, ...]:
        """The pods on nodes that publish nothing, as far as the reader sees how that is known."""
        pods_named = {one.about for one in named}
        silent = publishers.silent(self._evidence.views, names, pods_named)
        seen = Reason(text="", children=(*silent,)).seen_by(self._evidence.sight.sees_key)
        return seen.children

    def _is_a_node_unserved(self) -> bool:
        """Whether some slices are for single nodes, and other nodes are there than these."""
        views = self._evidence.views
        named = {one.node.name for one in views.inventory.slices() if one.node.name}
        return bool(named) and named != {
            key.name for key in views.objects.keys(*api_resources.NODES)
        }

    async def gone_nodes(self, pod: JsonObject) -> tuple[str, ...]:
        """The deletions of nodes whose devices would do for a pod about which nodes are asked."""
        evidence = self._evidence
        is_unasked = untried.cause(evidence.views, pod, evidence.rules)
        if is_unasked or not await self._is_any_slice_gone():
            return ()
        return tuple(reason.text for reason in await closed_nodes.withdrawn(evidence, pod))

    async def _is_any_slice_changed(self) -> bool:
        """Whether a slice was written after its creation, or is gone."""
        if self._are_slices_changed is None:
            slices = api_resources.RESOURCE_SLICES
            changed = await former_circumstances.changed(self._evidence, slices)
            self._are_slices_changed = bool(changed)
        return self._are_slices_changed

    async def _is_any_slice_gone(self) -> bool:
        if self._are_slices_gone is None:
            slices = api_resources.RESOURCE_SLICES
            gone = await former_circumstances.gone_of_kind(self._evidence, slices, ())
            self._are_slices_gone = bool(gone)
        return self._are_slices_gone

    async def failed(self, key: ObjectKey) -> tuple[str, ...]:
        """The failures of earlier bindings of a pod, as lines."""
        own = attempt_reasons.made_by_scheduler(await self._evidence.decisions(key))
        tried = attempt_reasons.of_decisions(own[::-1])
        return tuple(reason.text for reason in attempt_reasons.failed_bindings(tried))

    async def _made_again(self, pod: JsonObject) -> DecisionSummary | None:
        evidence = self._evidence
        views = evidence.views
        if "resourceslices" in evidence.lacks and not views.inventory.pool_ids():
            return None
        nodes = await self._index()
        if nodes is None:
            return None
        return devices.made_again(
            evidence.rules, views, nodes, pod, await evidence.now(), SummaryBounds()
        )

    async def _index(self) -> NodeIndex | None:
        """The index of nodes and bound pods; None where there are more nodes than are asked."""
        evidence = self._evidence
        bound = evidence.bounds.refusal_nodes_max
        if self._nodes is None and evidence.views.objects.count(*api_resources.NODES) <= bound:
            self._nodes = await evidence.run(
                lambda seen: node_answers.indexing(evidence.rules, seen)
            )
        return self._nodes
