"""The evidence for an answer: log events and views of one history, read on demand."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import anyio.lowlevel

from app.analysis import scheduling_rules
from app.analysis.blast.bounds import BlastBounds
from app.analysis.explain import sources
from app.analysis.explain.pods import ExplainBounds, Steps
from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling import repeated_attempts
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import DECISION, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.event import EVENTS_PAGE
from app.domain.values import api_resources
from app.domain.values.fields import decision_body
from app.domain.values.identifiers import NO_UID
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments

ResultT = TypeVar("ResultT")
ViewsAt = Callable[[Revision], Awaitable[LiveViews]]


class PastMoments(NamedTuple):
    """The views of any revision, whole ones and such with devices, rules, patches and classes.

    The latter may lack objects of all other kinds, which are many in a long history.
    """

    views: ViewsAt
    devices: ViewsAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The rights of the reader of an answer, besides the objects from which reasons are computed.

    `reads_events` is whether the reader may see Event objects about the subject; without it, the
    answer uses none. `sees` is whether the reader may see an event of the log, `sees_key` whether
    an object, `sees_all` whether all objects.
    """

    reads_events: bool = True
    sees_all: bool = True
    sees: Callable[[Event], bool] = lambda _: True
    sees_key: Callable[[ObjectKey], bool] = lambda _: True


@dataclass(slots=True, kw_only=True, eq=False)
class ExplainedMoment:
    """The views of the moment in question, and the log up to it.

    `sight` is what the reader may see of it. `past` has the views of any revision. If `views` move
    during a computation, it is repeated on the views of the revision at its beginning.
    `time` is the instant of the moment; by default it is the time of the event at the revision.
    `lacks` are the resources of which the recording may lack whole objects.
    """

    log: EventLog
    info: HistoryInfo
    views: LiveViews
    past: PastMoments
    rules: SchedulerRules
    bounds: ExplainBounds = ExplainBounds()
    blast_bounds: BlastBounds = BlastBounds()
    sight: Sight = Sight()
    time: Instant | None = None
    lacks: frozenset[str] = frozenset()

    def lacks_rules(self, views: LiveViews) -> bool:
        """Whether a DeviceTaintRule may have counted in a recording that shows none.

        Whether the cluster served rules at all is not known either.
        """
        is_known = views.objects.count(*api_resources.DEVICE_TAINT_RULES)
        return self.info.is_recorded and not is_known

    async def now(self) -> Instant:
        """The instant of the moment."""
        if self.time is not None:
            return self.time
        return await moments.time_of(self.log, self.info, self.views.revision)

    async def rules_at(self, views: LiveViews) -> SchedulerRules:
        """The rules of the scheduler at the revision of other views.

        What a fork shares with its source was decided by the rules of the source.
        """
        info = await moments.history_at(self.log, self.info, views.revision)
        if info.settings == self.info.settings:
            return self.rules
        return scheduling_rules.of(info, views.profile, self.rules.compiler)

    async def views_at(self, revision: Revision) -> LiveViews:
        """The views of a revision."""
        return await self.past.views(revision)

    async def published_at(self, revision: Revision) -> LiveViews:
        """The devices, rules, patches and classes of a revision; other objects may be missing."""
        return await self.past.devices(revision)

    async def changes(self, key: ObjectKey) -> list[Event]:
        """The states of an object, newest first, without requests that were only observed.

        For a pod or claim that exists, the states of a deleted one with the same name are left out:
        they say nothing about it. Those of a node or slice stay, because a new one with the same
        name has the same devices.
        """
        events = [event for event in await self.observed(key) if event.is_about_object]
        if key[:2] in _OF_ONE_LIFE and self.views.objects.get(key) is not None:
            since = _last_deletion(events)
            return [event for event in events if event.revision > since]
        return events

    async def created(self, key: ObjectKey) -> Instant | None:
        """The time at which the last object of a name was created; None if nothing is known of it.

        It is read by the name, however long the history is.
        """
        states = (event for event in await self.observed(key) if event.is_about_object)
        last = next((one for one in states if one.type is not EventType.OBJECT_DELETED), None)
        if last is None:
            return None
        (begun,) = await self.log.creations(self.info.id, [last])
        return await moments.time_of(self.log, self.info, begun)

    async def observed(self, key: ObjectKey) -> list[Event]:
        """The states of an object and the observed requests about it, newest first."""
        return await self.log.read_object(
            self.info.id, key, until=self.views.revision, limit=self.bounds.cause_changes_max
        )

    async def decisions(self, key: ObjectKey, *, until: Revision | None = None) -> list[Event]:
        """The decisions about an object, or about the last one of its name, newest first.

        Decisions about objects of the name that were deleted before it are left out.
        """
        decision_key = DECISION._replace(namespace=key.namespace, name=key.name)
        last = self.views.revision if until is None else until
        events = await self.log.read_object(
            self.info.id, decision_key, until=last, limit=self.bounds.cause_changes_max
        )
        decisions = [
            event
            for event in events
            if event.type is EventType.DECISION_RECORDED
            and event.object.get("resource") == key.resource
        ]
        if not decisions:
            return []
        states = [
            event
            for event in await self.observed(key)
            if event.is_about_object and event.revision <= last
        ]
        if not states:
            return decisions
        newest = states[0]
        since = _last_deletion(states[1:])
        return [
            event
            for event in decisions
            if event.revision > since
            and decision_body.read(event.object).inputs.uid in (NO_UID, newest.uid)
        ]

    async def repeated_attempts(self, decisions: Sequence[Event]) -> list[tuple[Event, int]]:
        """The decisions about attempts that wrote nothing, the first one first.

        They are about several pods; returned are those about the pod of `decisions`, each with the
        scheduler's count of the pod's attempts. Only the newest are looked at.
        """
        uids = {decision_body.read(event.object).inputs.uid for event in decisions} - {NO_UID}
        if not uids:
            return []
        place = DECISION._replace(namespace="", name="")
        events = await self.log.read_object(
            self.info.id, place, until=self.views.revision, limit=self.bounds.cause_changes_max
        )
        return [
            (event, one.number)
            for event in reversed(events)
            if event.type is EventType.DECISION_RECORDED
            and event.object.get("outcome") == repeated_attempts.OUTCOME
            for one in repeated_attempts.read(decision_body.inputs(event.object))
            if one.uid in uids
        ]

    async def event(self, revision: int) -> Event | None:
        """The event at a revision; None when there is none or the reader may not see it."""
        if not 0 < revision <= self.views.revision:
            return None
        events = await self.log.read(
            self.info.id, after=Revision(revision - 1), until=Revision(revision), limit=1
        )
        return events[0] if events and self.sight.sees(events[0]) else None

    async def before(self, revision: int, count: int) -> list[Event]:
        """The last `count` events before a revision, oldest first."""
        until = Revision(revision - 1)
        after = Revision(max(0, until - count))
        return await self.log.read(self.info.id, after=after, limit=count, until=until)

    async def every(self) -> AsyncIterator[Event]:
        """All events up to the moment, in order; yields to the loop after each page."""
        after = Revision(0)
        until = self.views.revision
        while after < until:
            events = await self.log.read(self.info.id, after=after, until=until, limit=EVENTS_PAGE)
            if not events:
                return
            for event in events:
                yield event
            after = events[-1].revision
            await anyio.lowlevel.checkpoint()

    async def sourced(self, reason: Reason) -> Reason:
        """A reason and its children, with the events since which they hold, if known."""
        children = [await self.sourced(child) for child in reason.children]
        revision, text = reason.revision, reason.text
        if reason.holds is not None and reason.about is not None:
            until = Revision(revision or self.views.revision)
            events = await self.log.read_object(
                self.info.id, reason.about, until=until, limit=self.bounds.cause_changes_max
            )
            states = [event for event in events if event.is_about_object]
            since = sources.since(states, reason.holds)
            if since is not None:
                revision = since.revision
            if since is not None and reason.since and self.sight.sees(since):
                text += f"{reason.since} {sources.by(since)}"
        elif children == list(reason.children):
            return reason
        return replace(
            reason, text=text, children=tuple(children), revision=revision, holds=None, since=""
        )

    async def run(self, work: Callable[[LiveViews], Steps[ResultT]]) -> ResultT:
        """Run the work step by step on views that do not change."""
        views = self.views
        revision = views.revision
        steps = work(views)
        try:
            while views.revision == revision:
                next(steps)
                await anyio.lowlevel.checkpoint()
        except StopIteration as done:
            result: ResultT = done.value
            return result
        # The history has advanced: start again on fixed views of the starting revision.
        self.views = await self.views_at(revision)
        return await drive(work(self.views))


_OF_ONE_LIFE = (api_resources.PODS, api_resources.RESOURCE_CLAIMS)
"""The kinds whose objects have only the name in common with a deleted one of that name."""


def _last_deletion(events: Iterable[Event]) -> int:
    """The revision of the newest deletion among the events, newest first; 0 if there is none."""
    return next((each.revision for each in events if each.type is EventType.OBJECT_DELETED), 0)


async def drive(steps: Steps[ResultT]) -> ResultT:
    """Run all steps, yielding to the loop after each."""
    try:
        while True:
            next(steps)
            await anyio.lowlevel.checkpoint()
    except StopIteration as done:
        result: ResultT = done.value
        return result


def body(event: Event | None) -> JsonObject | None:
    """The body of a decision; None without a decision."""
    return None if event is None else event.object
