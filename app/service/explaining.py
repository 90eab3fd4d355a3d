"""Why something is as it is: the recorded decision, and its reasons made again in full.

The summary in the log says what was decided; the reasons down to the device are computed at the
revision that the decision observed (or at the moment asked for), which is exact because everything
is deterministic. The answer is one tree of texts, ready for a terminal or as JSON.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio.lowlevel
import anyio.to_thread
import msgspec

from app.analysis.blast import compare, world
from app.analysis.blast import text as blasting_text
from app.analysis.blast.compare import BlastBounds
from app.analysis.blast.radius import BlastRadius
from app.analysis.explain import choices, questions, scheduling_rules
from app.analysis.explain import claims as claim_reasons
from app.analysis.explain import decisions as decision_reasons
from app.analysis.explain import devices as device_reasons
from app.analysis.explain import pods as pod_reasons
from app.analysis.explain import preemption as preemption_reasons
from app.analysis.explain.choices import Choice
from app.analysis.explain.pods import ExplainBounds, PodFindings, Steps
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.scheduling_cycle import default_preemption
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.errors import InputError, NotFound
from app.domain.log import DECISION, Event, EventType, HistoryInfo, ObjectKey, Revision, doubts
from app.domain.log.doubts import Affects, Doubt
from app.domain.objects.profile import Profile
from app.domain.values import api_resources, condition_types, timestamps
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments, recorded_doubts

EVENTS_MAX = 50
"""Decisions and changes of one subject that are looked through, newest first."""

BY_PREEMPTION = default_preemption.CONDITION_REASON

BY_TAINT = "DeletionByDeviceTaintManager"
"""Reason of the condition on pods that were evicted for a taint of their device."""

Found = TypeVar("Found")
ViewsAt = Callable[[Revision], Awaitable[LiveViews]]


class Explainer:
    """Answers one question about one history.

    `views_at` gives the views of any revision. Long work gives way after each small step, so that
    whoever runs the loop goes on answering; if the given views move meanwhile, those of the
    revision at the beginning are taken instead.
    """

    def __init__(
        self,
        log: EventLog,
        info: HistoryInfo,
        views: LiveViews,
        compiler: SelectorCompiler,
        profile: Profile,
        *,
        views_at: ViewsAt,
        bounds: ExplainBounds = ExplainBounds(),
        blast_bounds: BlastBounds = BlastBounds(),
    ) -> None:
        self._log = log
        self._info = info
        self._views = views
        self._views_at = views_at
        self._bounds = bounds
        self._blast_bounds = blast_bounds
        self._rules = scheduling_rules.of(info, profile, compiler)

    async def why(self, question: Question) -> ObjectExplanation:
        """The answer as of the views. Raises NotFound, InputError for a kind without reasons.

        What an import could not know goes with the answer as doubts, and with a NotFound as words.
        """
        key = questions.key_of(question)
        recorded = await recorded_doubts.doubts_of(self._log, self._info)
        try:
            answer = await self._why(question)
        except NotFound as problem:
            unsure = uncertainty.lines(_about(recorded, key))
            if not unsure:
                raise
            text = "; ".join((problem.message, *(line.strip() for line in unsure)))
            raise NotFound(text, resource=key.resource) from problem
        return replace(answer, doubts=(*self._of_subject(key), *recorded))

    def _of_subject(self, key: ObjectKey) -> tuple[Doubt, ...]:
        """The doubt about the subject itself, when its last state was not recorded in full."""
        event = self._views.objects.event(key)
        codes = () if event is None else doubts.of_event(event)
        if not codes:
            return ()
        text = "; ".join(doubts.text_of(code) for code in codes)
        return (
            Doubt(
                code=codes[0],
                affects=Affects.CONTENT,
                kind=questions.named(key),
                count=0,
                text=text,
            ),
        )

    async def _why(self, question: Question) -> ObjectExplanation:
        key = questions.key_of(question)
        decision = await self._last_decision(key)
        tree = self._views.objects.get(key)
        if tree is None:
            return await self._gone(key, decision)
        match key.resource:
            case "pods":
                return await self._pod(key, tree, decision, question)
            case "resourceclaims":
                return await self._claim(key, tree, decision, question)
            case "devicetaintrules":
                return await self._rule(key, tree, decision)
            case _:
                return self._other(key, decision)

    async def _pod(
        self, key: ObjectKey, tree: JsonObject, decision: Event | None, question: Question
    ) -> ObjectExplanation:
        subject = f"pod {key.namespace}/{key.name}"
        said = [] if decision is None else [decision_reasons.reason_of(decision)]
        node = core.node_name(tree)
        body = _body(decision)
        if node and not question.node:
            quirks = self._rules.quirks
            holdings = await self._run(lambda views: device_reasons.claims_of(views, tree, quirks))
            holdings += await self._disruption(key)
            return ObjectExplanation(
                subject=subject,
                outcome="Scheduled",
                revision=self._views.revision,
                text=self._place_text(tree, node),
                reason=Reason(text=subject, children=(*said, *holdings)),
                decision=body,
            )
        if node:
            found = await self._when_placed(key, tree, question)
        else:
            said += preemption_reasons.awaited(self._views.objects, tree)
            found = await self._findings(tree, decision, question)
        outcome = decision_body.read(body).outcome or "Pending"
        return ObjectExplanation(
            subject=subject,
            outcome="Scheduled" if node else outcome,
            revision=self._views.revision,
            text=found.text,
            reason=Reason(text=subject, children=(*said, *found.children)),
            decision=body,
            details=found.to_json(),
        )

    async def _when_placed(
        self, key: ObjectKey, tree: JsonObject, question: Question
    ) -> PodFindings:
        """What a node would have said to a bound pod, at the moment at which it was placed.

        Now the node may be full by what came later, and the pod's claims are bound to its own node.
        """
        bound = choices.first_with(await self._changes(key), "spec", "nodeName")
        if bound is None:
            return PodFindings(text="when it was placed is not in the history", children=())
        moments = [bound.revision]
        pod = pods.facts(tree)
        for entry in pods.named_claims(pod):
            claim = claim_key(key.namespace, entry.name or "")
            allocated = choices.first_with(await self._changes(claim), "status", "allocation")
            if allocated is not None and pods.is_reserved_for(allocated.object, pod.uid):
                moments.append(allocated.revision)
        place = DECISION._replace(namespace=key.namespace, name=key.name)
        decisions = await self._log.read_object(
            self._info.id, place, until=min(moments), limit=EVENTS_MAX
        )
        before = choices.revision_before(decisions, min(moments))
        views = await self._views_at(before)
        unbound = views.objects.get(key)
        if unbound is None:
            return PodFindings(text="it was made for its node, so no other was asked", children=())
        asked = pod_reasons.waiting(
            self._rules, views, unbound, self._bounds,
            now=bound.stamp.time, node=question.node, help=question.help,
        )  # fmt: skip
        found = await _drive(asked)
        return replace(found, text=f"when it was placed (revision {before}), {found.text}")

    def _place_text(self, pod: JsonObject, node: str) -> str:
        if self._views.objects.event(ObjectKey(*api_resources.NODES, "", node)) is None:
            return f"is bound to node {node}, which is gone; PodGC removes it after 40 to 60 s"
        if "deletionTimestamp" in pod["metadata"]:
            return f"ends on node {node}; its devices are free when it has"
        if core.is_finished(pod):
            return f"has ended on node {node}"
        return f"runs on node {node}"

    async def _findings(
        self, tree: JsonObject, decision: Event | None, question: Question
    ) -> PodFindings:
        now = Instant(decision.stamp.time if decision is not None else 0)
        return await self._run(
            lambda views: pod_reasons.waiting(
                self._rules,
                views,
                tree,
                self._bounds,
                now=now,
                node=question.node,
                help=question.help,
            )
        )

    async def _claim(
        self, key: ObjectKey, tree: JsonObject, decision: Event | None, question: Question
    ) -> ObjectExplanation:
        subject = f"resourceclaim {key.namespace}/{key.name}"
        children = [] if decision is None else [decision_reasons.reason_of(decision)]
        results = dra.results(tree)
        pods = claim_reasons.consumers_of(tree)
        is_allocated = dra.allocation(tree) is not None
        details: JsonObject = {}
        children += claim_reasons.state_of(self._views, tree)
        if results:
            chosen = await self._choice(key, tree, pods)
            children += chosen.children
            details = chosen.details
        elif not is_allocated:
            users = claim_reasons.users_of(self._views, key, tree)
            if not users:
                children.append(Reason(text="no pod uses the claim, so nobody asks for devices"))
            for user in users[:1]:
                found = await self._of_user(replace(question, kind="pod", name=user))
                if found is not None:
                    children.append(Reason(text=found.subject, children=found.reason.children))
                    details = found.details
        return ObjectExplanation(
            subject=subject,
            outcome="Allocated" if is_allocated else "Pending",
            revision=self._views.revision,
            text=_has(len(results)) if results else "no device is allocated",
            reason=Reason(text=subject, children=tuple(children)),
            decision=_body(decision),
            details=details,
        )

    async def _of_user(self, question: Question) -> ObjectExplanation | None:
        try:
            return await self._why(question)
        except NotFound:
            return None

    async def _choice(self, key: ObjectKey, tree: JsonObject, pods: Sequence[str]) -> Choice:
        """Why these devices and not those: the allocation made again where it was made."""
        events = await self._changes(key)
        moment = choices.moment_of(events, tree)
        if moment is None or not pods:
            return Choice(children=(Reason(text="who chose these devices is not in the history"),))
        place = DECISION._replace(namespace=key.namespace, name=pods[0])
        decisions = await self._log.read_object(
            self._info.id, place, until=moment, limit=EVENTS_MAX
        )
        before = choices.revision_before(decisions, moment)
        node = choices.node_of(self._views, key.namespace, pods[0], tree)
        views = await self._views_at(before)
        pod = views.objects.get(ObjectKey("", "pods", key.namespace, pods[0]))
        if pod is None or not node:
            text = "the pod or its node is not known from then, so the choice is not made again"
            return Choice(children=(Reason(text=text),))
        asked = pod_reasons.waiting(
            self._rules, views, pod, self._bounds, now=Instant(0), node=node, help=False
        )
        try:
            found = await _drive(asked)
        except NotFound:
            text = f"node {node} is not known from then, so the choice is not made again"
            return Choice(children=(Reason(text=text),))
        return choices.compared(found, key, tree, before)

    async def _rule(
        self, key: ObjectKey, tree: JsonObject, decision: Event | None
    ) -> ObjectExplanation:
        children, devices, claims = await self._run(lambda views: device_reasons.rule(views, tree))
        blast = await self._blast(key.name)
        radius = Reason(
            text="what it does, against a state without it:",
            children=blasting_text.reasons(blast, NAMES_MAX),
        )
        conditions = meta.conditions(tree)
        return ObjectExplanation(
            subject=f"devicetaintrule {key.name}",
            outcome=conditions[0].reason if conditions else "NotProcessed",
            revision=self._views.revision,
            text=f"selects {_has(len(devices))}, {len(claims)} allocated "
            f"{'claim' if len(claims) == 1 else 'claims'}",
            reason=Reason(text=f"devicetaintrule {key.name}", children=(*children, radius)),
            decision=_body(decision),
            details={
                "devices": devices,
                "claims": claims,
                "blast": msgspec.to_builtins(blast),
            },
        )

    async def _blast(self, rule: str) -> BlastRadius:
        """The blast radius of a rule that is there, computed in a thread."""
        now = await moments.time_of(self._log, self._info, self._views.revision)
        frozen = world.freeze(self._views, self._info, None, now)
        bounds = self._blast_bounds
        return await anyio.to_thread.run_sync(compare.blast_of_rule, frozen, rule, bounds)

    def _other(self, key: ObjectKey, decision: Event | None) -> ObjectExplanation:
        if decision is None:
            raise InputError(
                f"no controller has decided about {questions.named(key)}",
                cure="ask about a pod, resourceclaim or devicetaintrule",
            )
        return ObjectExplanation(
            subject=questions.named(key),
            outcome=decision_body.read(decision.object).outcome,
            revision=self._views.revision,
            text="",
            reason=Reason(
                text=questions.named(key), children=(decision_reasons.reason_of(decision),)
            ),
            decision=_body(decision),
        )

    async def _gone(self, key: ObjectKey, decision: Event | None) -> ObjectExplanation:
        revision = self._views.revision
        events = await self._changes(key)
        if not events:
            where = f" in namespace {key.namespace}" if key.namespace else ""
            raise NotFound(
                f'{key.resource} "{key.name}" not found{where} up to revision {revision}'
                + await self._elsewhere(key),
                resource=key.resource,
            )
        last = events[0]
        when = timestamps.micro_text(last.stamp.time)
        actor = last.stamp.actor.user
        children = [Reason(text=f"deleted at {when} (revision {last.revision}) by {actor}")]
        if decision is not None:
            children.insert(0, decision_reasons.reason_of(decision, with_causes=True))
        children += await self._disruption(key)
        outcome = decision_body.read(decision.object).outcome if decision is not None else "Deleted"
        return ObjectExplanation(
            subject=questions.named(key),
            outcome=outcome,
            revision=revision,
            text="is gone",
            reason=Reason(text=questions.named(key), children=tuple(children)),
            decision=_body(decision),
        )

    async def _elsewhere(self, key: ObjectKey) -> str:
        """Where or when there is one of that name, for who has mistaken namespace or moment."""
        head = await self._log.head(self._info.id)
        events = await self._log.read_object(
            self._info.id, key, until=head.revision, limit=EVENTS_MAX
        )
        for event in events:
            if event.is_about_object:
                created = meta.creation_timestamp(event.object)
                return f"; one was created later, at {created}" if created else "; one came later"
        others = sorted(
            found.namespace
            for found in self._views.objects.keys(key.group, key.resource)
            if found.name == key.name
        )
        return f"; there is one in namespace {listed(others, len(others))}" if others else ""

    async def _changes(self, key: ObjectKey) -> list[Event]:
        """The states of an object, newest first; requests that were only observed left out."""
        events = await self._log.read_object(
            self._info.id, key, until=self._views.revision, limit=EVENTS_MAX
        )
        return [event for event in events if event.is_about_object]

    async def _disruption(self, key: ObjectKey) -> list[Reason]:
        """What disturbed a pod, with the taints that its devices had then."""
        events = await self._changes(key)
        since: Event | None = None
        for event in events:
            if meta.condition(event.object, condition_types.DISRUPTION_TARGET) is None:
                break
            since = event
        condition = (
            None
            if since is None
            else meta.condition(since.object, condition_types.DISRUPTION_TARGET)
        )
        if since is None or condition is None:
            return []
        reason = condition.reason
        children: list[Reason] = []
        if reason == BY_TAINT:
            before = await self._views_at(Revision(since.revision - 1))
            children = await _drive(
                device_reasons.evicting(before, since.object, self._rules.quirks)
            )
        elif reason == BY_PREEMPTION:
            before = await self._views_at(Revision(since.revision - 1))
            last = await self._log.read(
                self._info.id,
                after=Revision(max(0, since.revision - 1 - preemption_reasons.EFFECTS_MAX)),
                limit=preemption_reasons.EFFECTS_MAX,
                until=Revision(since.revision - 1),
            )
            evicting = preemption_reasons.decision_about(last, since.object)
            views = self._views if evicting is None else before
            children = [*preemption_reasons.evicted_for(evicting, views.objects, since.object)]
        text = f"{reason}: {condition.message}"
        return [Reason(text=text, children=tuple(children))]

    async def _last_decision(self, key: ObjectKey) -> Event | None:
        place = DECISION._replace(namespace=key.namespace, name=key.name)
        events = await self._log.read_object(
            self._info.id, place, until=self._views.revision, limit=EVENTS_MAX
        )
        for event in events:
            if (
                event.type is EventType.DECISION_RECORDED
                and event.object.get("resource") == key.resource
            ):
                return event
        return None

    async def _run(self, work: Callable[[LiveViews], Steps[Found]]) -> Found:
        """Do the work step by step on views that stay as they are."""
        views = self._views
        revision = views.revision
        steps = work(views)
        try:
            while views.revision == revision:
                next(steps)
                await anyio.lowlevel.checkpoint()
        except StopIteration as done:
            result: Found = done.value
            return result
        # The history went on: begin again on the views of then, which nobody changes.
        self._views = await self._views_at(revision)
        return await _drive(work(self._views))


async def _drive(steps: Steps[Found]) -> Found:
    """Do all steps, giving way after each."""
    try:
        while True:
            next(steps)
            await anyio.lowlevel.checkpoint()
    except StopIteration as done:
        result: Found = done.value
        return result


def _has(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _about(recorded: tuple[Doubt, ...], key: ObjectKey) -> tuple[Doubt, ...]:
    """The doubts about the kind of an object, and those about all kinds."""
    kind = f"{key.resource}.{key.group}" if key.group else key.resource
    return tuple(doubt for doubt in recorded if doubt.kind in ("", kind))


def _body(event: Event | None) -> JsonObject | None:
    return None if event is None else event.object
