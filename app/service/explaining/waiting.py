"""The causes of waiting pods, for findings: those of devices from recorded or repeated attempts,
and the taints, cordons and allocated claims that close nodes to them."""

from collections.abc import Mapping

from msgspec.structs import replace

from app.analysis.explain import attempts as attempt_reasons
from app.analysis.explain import node_answers, waits
from app.analysis.explain.reasons import NAMES_MAX, listed
from app.analysis.findings import devices
from app.analysis.findings.obstacles import Obstacles
from app.analysis.findings.outgrown import LostDevices
from app.analysis.findings.report import Finding, FindingKind, Findings
from app.analysis.recordings import uncertainty
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.log import DECISION, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, decision_body
from app.domain.values.fields.decision_body import DecisionSummary
from app.domain.values.json_tree import JsonObject
from app.service.explaining import selections
from app.service.explaining.evidence import ExplainedMoment

_DECISIONS_MAX = 10
"""Decisions about objects of a pod's name that are read to find its last attempt."""


async def with_causes(evidence: ExplainedMoment, answer: Findings, pods_max: int) -> Findings:
    """The findings; those about pods that no node takes name devices, taints and claims as causes.

    At most `pods_max` pods are looked at, the newest of each finding.
    """
    evidence.lacks = uncertainty.unseen(answer.doubts)
    attempts, obstacles = _Attempts(evidence), Obstacles(evidence.views)
    is_local, lost = devices.is_local(evidence.views), LostDevices(evidence.views)
    left = pods_max
    items: list[Finding] = []
    for item in answer.items:
        is_about_devices = devices.REFUSED in item.text
        if item.kind is not FindingKind.WAITING_PODS:
            items.append(item)
            continue
        causes: dict[tuple[str, ...], ObjectKey] = {}
        explained = 0
        for subject in item.objects if item.present else ():
            pod = evidence.views.objects.get(subject.key)
            if not left or pod is None or core.needs_no_node(pod):
                continue
            changed = [*selections.patched_away(evidence, pod)][:NAMES_MAX]
            if left and is_about_devices:
                changed += await selections.reclassed(evidence, pod, lost)
            lines = (*obstacles.lines(item.text, pod), *(reason.text for reason in changed))
            summary = None
            if waits.NOT_YET in item.text:
                left -= 1
                lines = (*lines, *await attempts.failed(subject.key))
            if is_about_devices:
                left -= 1
                summary = await attempts.last(subject.key, pod)
            if summary is not None:
                of_devices = devices.lines(summary, evidence.views, pod, is_local=is_local)
                lines = (*of_devices, *lines)
            if lines:
                causes.setdefault(lines, subject.key)
                explained += summary is not None or not is_about_devices
        items.append(replace(item, causes=_together(causes, are_all=explained == item.present)))
    return replace(answer, items=tuple(items))


def _together(causes: Mapping[tuple[str, ...], ObjectKey], *, are_all: bool) -> tuple[str, ...]:
    """The lines of all pods; each line begins with its pods if pods may have different causes.

    `are_all` is whether the lines of all waiting pods of the finding are known.
    """
    if len(causes) == 1 and are_all:
        return next(iter(causes))
    pods_of: dict[str, list[str]] = {}
    for lines, pod in causes.items():
        for line in lines:
            pods_of.setdefault(line, []).append(f"{pod.namespace}/{pod.name}")
    return tuple(f"{listed(names, len(names))}: {line}" for line, names in pods_of.items())


class _Attempts:
    """The last attempts for pods. They are repeated if the history has no recorded decisions."""

    def __init__(self, evidence: ExplainedMoment) -> None:
        self._evidence = evidence
        self._nodes: NodeIndex | None = None

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
        if views.objects.count(*api_resources.NODES) > evidence.bounds.refusal_nodes_max:
            return None
        if self._nodes is None:
            self._nodes = await evidence.run(
                lambda seen: node_answers.indexing(evidence.rules, seen)
            )
        return devices.made_again(
            evidence.rules, views, self._nodes, pod, await evidence.now(), SummaryBounds()
        )
