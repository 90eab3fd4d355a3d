"""The explainer: answers one question about one history, with the doubts about the answer."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import anyio.lowlevel
import anyio.to_thread

from app.analysis import scheduling_rules, scope
from app.analysis.blast.bounds import BlastBounds
from app.analysis.explain import decisions as decision_reasons
from app.analysis.explain import lives, questions, sources, untried, verdicts
from app.analysis.explain.observed import kubelet_logs, refused_writes, unseen_changes
from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.workloads import budgets, members, refused
from app.analysis.recordings import uncertainty
from app.analysis.views import LiveViews
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.errors import InputError, NotFound
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision, doubts
from app.domain.log.doubts import Affects, Doubt
from app.domain.log.event import KeyFilter
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.values import api_groups, api_resources, counts
from app.domain.values.fields import decision_body, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments, recorded_doubts
from app.service.explaining import (
    claims,
    disruption,
    evictions,
    hardware,
    namespaces,
    pods,
    quotas,
    workloads,
)
from app.service.explaining.evidence import ExplainedMoment, PastMoments, Sight, body
from projections.objects import ObjectsProjection

KEYS_AT_ONCE = 50
"""Keys that are checked against the reader's rights before the loop runs other requests."""


class Explainer:
    """Answers one question about one history.

    `past` has the views of any revision. Long computations yield to the loop after each small step.
    If the given views move meanwhile, those of the revision at the beginning are used instead.
    """

    def __init__(
        self,
        log: EventLog,
        info: HistoryInfo,
        views: LiveViews,
        compiler: SelectorCompiler,
        profile: Profile,
        *,
        past: PastMoments,
        bounds: ExplainBounds = ExplainBounds(),
        blast_bounds: BlastBounds = BlastBounds(),
        sight: Sight = Sight(),
    ) -> None:
        self._evidence = ExplainedMoment(
            log=log,
            info=info,
            views=views,
            past=past,
            rules=scheduling_rules.of(info, profile, compiler),
            bounds=bounds,
            blast_bounds=blast_bounds,
            sight=sight,
        )

    async def why(self, question: Question, time: Instant | None = None) -> ObjectExplanation:
        """The answer at the views' revision. Raises NotFound, InputError for an unknown kind.

        `time` is the instant of the moment, as in `ExplainedMoment`. The answer carries the doubts
        of an import; a NotFound carries them in its message.
        """
        evidence = self._evidence
        evidence.time = time
        recorded = await recorded_doubts.doubts_of(evidence.log, evidence.info)
        evidence.lacks = uncertainty.unseen(recorded)
        key = await find_key(evidence.log, evidence.info, question, evidence.views.objects)
        try:
            answer = await self._why(key, question)
        except NotFound as problem:
            unsure = uncertainty.lines(_about(recorded, key))
            if not unsure:
                raise
            text = "; ".join((problem.message, *(line.strip() for line in unsure)))
            raise NotFound(text, resource=key.resource) from problem
        observed = await evidence.observed(key)
        added = (
            *await namespaces.ending(evidence, key, observed),
            *refused_writes.reasons(observed),
        )
        with_refusals = replace(answer.reason, children=(*answer.reason.children, *added))
        seen = with_refusals.seen_by(evidence.sight.sees_key).as_recorded(evidence.lacks)
        reason = await evidence.sourced(seen)
        subject = (*self._of_subject(key), *unseen_changes.doubts(key, observed))
        text = answer.text
        if unseen_changes.may_be_gone(observed) and text and unseen_changes.GONE not in text:
            text = f"{text}; {unseen_changes.GONE}"
        return replace(
            answer, text=text, reason=reason, doubts=(*reason.doubts(), *subject, *recorded)
        )

    def _of_subject(self, key: ObjectKey) -> tuple[Doubt, ...]:
        """The doubt about the subject itself, when its last state was not recorded in full."""
        event = self._evidence.views.objects.event(key)
        codes = () if event is None else doubts.of_event(event)
        if not codes:
            return ()
        text = "; ".join(doubts.text_of(code) for code in codes)
        return (
            Doubt(
                code=codes[0],
                affects=Affects.CONTENT,
                kind=questions.subject_of(key),
                count=0,
                text=text,
            ),
        )

    async def _why(self, key: ObjectKey, question: Question) -> ObjectExplanation:
        evidence = self._evidence
        if (key.group, key.resource) == questions.DEVICES:
            return await hardware.device(evidence, key.name)
        if (key.group, key.resource) == questions.POOLS:
            return await hardware.pool(evidence, key.name)
        decision = next(iter(await evidence.decisions(key)), None)
        tree = evidence.views.objects.get(key)
        if tree is None:
            return await self._gone(key, decision, question)
        match key.resource:
            case "pods":
                return await pods.answer(evidence, key, tree, question)
            case "resourceclaims":
                return await claims.answer(evidence, key, tree, question)
            case "devicetaintrules":
                return await hardware.rule(evidence, key, tree, decision)
            case "resourceslices":
                return await hardware.resource_slice(evidence, key, tree)
            case "deviceclasses":
                return await hardware.device_class(evidence, key, tree)
            case "resourceslicepatches":
                return await hardware.patch(evidence, key, tree)
            case "nodes":
                return await hardware.node(evidence, key, tree)
            case "resourcequotas":
                lowered = await quotas.of_itself(evidence, key, tree)
                known = [*lowered, *self._of_quota(key, tree)]
                return await self._other(key, tree, decision, known)
            case "poddisruptionbudgets":
                protected = budgets.of_budget(evidence.views, key, tree)
                passed = await evictions.past_budget(evidence, key)
                return await self._other(key, tree, decision, (*protected, *passed))
            case "resourceclaimtemplates":
                reads_events = evidence.sight.reads_events
                used = untried.of_template(evidence.views, key, reads_events=reads_events)
                return await self._other(key, tree, decision, used)
            case "namespaces":
                known = await namespaces.reasons(evidence, key, tree)
                return await self._other(key, tree, decision, known)
            case _:
                return await self._other(key, tree, decision)

    def _of_quota(self, key: ObjectKey, tree: JsonObject) -> Iterator[Reason]:
        """The use of a quota, and what it refuses, as far as the reader may know that."""
        views, sight = self._evidence.views, self._evidence.sight
        yield from untried.of_quota(views, key, tree, reads_events=sight.reads_events)
        if sight.reads_events:
            yield from refused.of_quota(views, key, sight.sees_key)

    async def _other(
        self,
        key: ObjectKey,
        tree: JsonObject,
        decision: Event | None,
        known: Iterable[Reason] = (),
    ) -> ObjectExplanation:
        """The explanation of any object: its history, its conditions, the last decision."""
        events = await self._evidence.changes(key)
        made = await workloads.of(self._evidence, key, tree)
        decided = () if decision is None else (decision_reasons.reason_of(decision),)
        outcome = decision_body.read(body(decision)).outcome
        if not outcome:
            outcome = "Terminating" if meta.is_deleting(tree) else members.outcome(key, tree)
        return ObjectExplanation(
            subject=questions.subject_of(key),
            outcome=outcome,
            revision=self._evidence.views.revision,
            text=made.text,
            reason=Reason(
                text=questions.subject_of(key),
                children=(*made.reasons, *known, *decided, *lives.of_object(events, tree)),
            ),
            decision=body(decision),
        )

    async def _gone(
        self, key: ObjectKey, decision: Event | None, question: Question
    ) -> ObjectExplanation:
        evidence = self._evidence
        revision = evidence.views.revision
        events = await evidence.changes(key)
        if not events:
            where = f" in namespace {key.namespace}" if key.namespace else _anywhere(question)
            when = f"up to revision {revision}" if revision else "before the first event"
            raise NotFound(
                f'{key.resource} "{key.name}" not found{where} {when}' + await self._elsewhere(key),
                resource=key.resource,
            )
        last = events[0]
        when = sources.when(last.stamp.time)
        is_open = sources.is_only_asked(events)
        text = f"deleted at {when} (revision {last.revision}) by {sources.author(last)}"
        if is_open:
            text = f"deletion was asked for {sources.by(last)} (revision {last.revision})"
        children = [Reason(text=text, about=key)]
        children += lives.deletion_request(events[1:])
        children += unseen_changes.requests(await evidence.observed(key))
        children += await disruption.of(evidence, key)
        if decision is not None:
            children.append(decision_reasons.reason_of(decision, with_causes=True))
        children += (await workloads.of(evidence, key, last.object)).reasons
        if key.resource == "devicetaintrules":
            children += await evictions.of_rule(evidence, key)
        if key.resource == "deviceclasses":
            children += untried.waiting_for_class(evidence.views, key.name)
        outcome = "Terminating" if is_open else "Deleted"
        if key.resource == "pods" and not is_open and disruption.is_evicted(last.object):
            outcome = "Evicted"
        return ObjectExplanation(
            subject=questions.subject_of(key),
            outcome=outcome,
            revision=revision,
            text=f"is being deleted; {unseen_changes.GONE}" if is_open else "is gone",
            reason=Reason(text=questions.subject_of(key), children=tuple(children)),
            decision=body(decision),
        )

    async def _elsewhere(self, key: ObjectKey) -> str:
        """A hint where or when an object of that name exists, for a wrong namespace or moment."""
        evidence = self._evidence
        if turn := members.not_made_yet(evidence.views, key):
            owner, note = turn
            event = evidence.views.objects.event(owner)
            if event is not None and evidence.sight.sees(event):
                return note
        head = await evidence.log.head(evidence.info.id)
        events = await evidence.log.read_object(
            evidence.info.id,
            key,
            until=Revision(head.revision),
            limit=evidence.bounds.cause_changes_max,
        )
        if later := questions.created_later(events):
            return later
        if events := [event for event in events if evidence.sight.sees(event)]:
            return _requested(events)
        if key[:2] == api_resources.PODS and evidence.sight.reads_events:
            warnings = lives.warnings(evidence.views.objects.unusual_events(key.namespace or None))
            warning = warnings.get(f"{key.namespace}/{key.name}")
            if warning is not None:
                return f"; only Events about it were recorded; the kubelet said: {warning.text}"
        others = sorted(
            other.namespace
            for other in evidence.views.objects.keys(key.group, key.resource)
            if other.name == key.name and evidence.sight.sees_key(other)
        )
        if others:
            noun = counts.plural(len(others), "namespace")
            return f"; there is one in {noun} {listed(others, len(others))}"
        return await self._gone_elsewhere(key, Revision(head.revision))

    async def _gone_elsewhere(self, key: ObjectKey, until: Revision) -> str:
        """A hint to a deleted object of that name in another namespace, or to similar names."""
        bounds = self._evidence.bounds
        for other in (await self._known(key, until, name=key.name))[: bounds.places_max]:
            if (last := await self._last(other, until)) is not None:
                if last.type is EventType.OBJECT_DELETED:
                    ended = f"until revision {last.revision}"
                else:
                    ended = f"at revision {last.revision}"
                return f"; there was one in namespace {other.namespace} {ended}"
        keys = {other.name: other for other in await self._known(key, until)}
        # Comparing long names takes milliseconds each: not in the loop that serves requests.
        work = partial(scope.alike, key.name, keys, compared_max=bounds.names_compared_max)
        alike = [
            f"{name} in namespace {keys[name].namespace}" if keys[name].namespace else name
            for name in await anyio.to_thread.run_sync(work)
            if await self._last(keys[name], until) is not None
        ]
        return f"; do you mean {' or '.join(alike)}?" if alike else ""

    async def _known(self, key: ObjectKey, until: Revision, *, name: str = "") -> list[ObjectKey]:
        """The keys of the kind that the reader may see, with one name if it is given; yields."""
        evidence = self._evidence
        wanted, most = KeyFilter(*key[:2], name=name), evidence.bounds.names_max
        known = await evidence.log.keys(evidence.info.id, wanted, until=until, limit=most)
        seen = []
        for number, other in enumerate(known, 1):
            if evidence.sight.sees_key(other):
                seen.append(other)
            if number % KEYS_AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
        return seen

    async def _last(self, key: ObjectKey, until: Revision) -> Event | None:
        """The last event about an object that the reader may see."""
        evidence = self._evidence
        events = await evidence.log.read_object(evidence.info.id, key, until=until, limit=1)
        return next((event for event in events if evidence.sight.sees(event)), None)


_DEFINITIONS_MAX = 100
"""The definitions of kinds, also former ones, that are read for the name of an unknown kind."""


async def find_key(
    log: EventLog, info: HistoryInfo, question: Question, objects: ObjectsProjection
) -> ObjectKey:
    """The object key of a question, of a kind that the history has at any moment.

    Raises InputError for an unknown kind.
    """
    try:
        return questions.key_of(question, objects)
    except InputError:
        recorded = [each async for each in _recorded_kinds(log, info)]
        return questions.key_of(question, objects, recorded)


async def _recorded_kinds(log: EventLog, info: HistoryInfo) -> AsyncIterator[questions.KeptKind]:
    """The kinds that redra only keeps or that the history defines, also those with no object left.

    A history that is no recording has no report; each definition is named after its kind.
    """
    report = await recorded_doubts.report_of(log, info) or {}
    until = (await log.head(info.id)).revision
    places = dict.fromkeys(uncertainty.kinds_of(report))
    defined = KeyFilter(*api_resources.CUSTOM_RESOURCE_DEFINITIONS)
    for definition in await log.keys(info.id, defined, until=until, limit=_DEFINITIONS_MAX):
        resource, _, group = definition.name.partition(".")
        places[group, resource] = None
    for place in places:
        if registry.find(*place) is not None:
            continue
        for key in await log.keys(info.id, KeyFilter(*place), until=until, limit=1):
            last = await moments.last_state(log, info.id, key, until)
            yield key, "" if last is None else meta.kind(last.object)


def _about(recorded: tuple[Doubt, ...], key: ObjectKey) -> tuple[Doubt, ...]:
    """The doubts about the kind of an object, and those about all kinds.

    Slices show what devices and pools there are, and claims name devices.
    """
    kinds = {"", key.qualified_resource}
    if key[:2] in (questions.DEVICES, questions.POOLS):
        kinds |= {f"resourceslices.{api_groups.RESOURCE}"}
    if key[:2] == questions.DEVICES:
        kinds |= {f"resourceclaims.{api_groups.RESOURCE}"}
    return tuple(doubt for doubt in recorded if doubt.kind in kinds)


def _anywhere(question: Question) -> str:
    return " in any namespace" if question.namespace == questions.ANYWHERE else ""


def _requested(requests: Sequence[Event]) -> str:
    """The hint to an object of which only requests were recorded; they are newest first."""
    newest = requests[0]
    verdict = verdicts.logged(requests)
    more = "" if verdict is None else f"; the recorded scheduler said (its log): {verdict.message}"
    more += "".join(f"; {reason.text}" for reason in kubelet_logs.failures(requests))
    refusal = refused_writes.newest(requests)
    more += "" if refusal is None else f"; {refused_writes.sentence(refusal)}"
    more += "".join(f"; {reason.text}" for reason in unseen_changes.requests(requests))
    return f"; only requests about it were recorded, the last at revision {newest.revision}{more}"
