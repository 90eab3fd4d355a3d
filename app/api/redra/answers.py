"""Answers about one history as values, for the JSON of `/redra/v1` and for pages.

Each method first checks what the reader may see, so that both forms refuse alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread

from app.analysis import (
    attempts,
    device_map,
    object_history,
    scheduling_rules,
    search,
    spans,
    starts,
    timeline_pages,
)
from app.analysis import lanes as lane_picture
from app.analysis.attempts import AttemptList, TriedPod
from app.analysis.chronicle import Chronicle
from app.analysis.explain import attempts as explained_attempts
from app.analysis.explain import untried
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.findings import defects, findings, volumes, workloads
from app.analysis.findings.defects import KnownDefects
from app.analysis.findings.pods import PodCauses
from app.analysis.findings.report import Findings, KeptFindings
from app.analysis.incidents.incident import Incident
from app.analysis.lanes import Lanes
from app.analysis.map_answers import DeviceMap
from app.analysis.object_history import ObjectHistory
from app.analysis.recordings import uncertainty
from app.analysis.scan.sightings import ScanReport
from app.analysis.search import Hits
from app.analysis.starts import StartPace
from app.analysis.timeline_pages import TimelinePage
from app.analysis.traces import trace_events
from app.analysis.traces.trace_events import ViewerTrace
from app.analysis.views import LiveViews, ReleaseCompilers
from app.api.access.readers import WORKED_OUT_FROM, HistoryReader
from app.api.kubernetes.timelines import views_at
from app.api.redra.inquiries import (
    STRETCH,
    Inquiry,
    filter_of,
    integer,
    lanes_wanted,
    object_of,
    pools_wanted,
    question_of,
    subject_of,
)
from app.api.redra.scans import Scans
from app.api.server.limits import ApiLimits
from app.domain.controllers import registry
from app.domain.errors import BadRequest, Forbidden, NotFound, TooLarge
from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import api_resources, timestamps
from app.domain.values.bounded import Bounded
from app.domain.values.timestamps import Instant
from app.service import recorded_doubts
from app.service.answering import stepwise
from app.service.chronicles import Chronicles
from app.service.explaining import Explainer, find_key, former_findings, selections, waiting
from app.service.explaining.evidence import ExplainedMoment, PastMoments
from app.service.explaining.former_findings import FormerRefusals
from app.service.histories import Histories
from app.service.moments import is_revision, parse_instant, time_of
from app.service.runtime import HistoryRuntime
from projections.timeline import Entry

_READ_BY_FINDINGS = (api_resources.PODS, api_resources.RESOURCE_CLAIMS)
"""The kinds of which findings look at each object."""


class Answers:
    """Answers questions about histories; long ones are answered a bounded number at a time."""

    def __init__(self, histories: Histories, limits: ApiLimits) -> None:
        self._histories = histories
        self._limits = limits
        self._explanations = anyio.CapacityLimiter(limits.explanations_at_once_max)
        self._compilers = ReleaseCompilers()
        kept_max = limits.chronicles_max
        self._findings: Bounded[tuple[int, Revision, str, str], KeptFindings] = Bounded(kept_max)
        self._former = FormerRefusals(
            pods_max=limits.findings_former_pods_max,
            objects_max=limits.findings_former_objects_max,
            kept=Bounded(kept_max * limits.findings_former_pods_max),
        )
        self._scans = Scans(limits)
        self.chronicles = Chronicles(kept_max=kept_max, events_max=limits.chronicle_events_max)

    async def views(self, inquiry: Inquiry) -> LiveViews:
        """The views at the moment. Raises InputError, NotFound beyond the end."""
        return await views_at(self._histories, inquiry.runtime, inquiry.moment)

    async def chronicle(self, runtime: HistoryRuntime) -> Chronicle:
        """The chronicle of the history, as far as it has been read; checks no rights."""
        chronicle, _ = await self.chronicles.of(runtime)
        return chronicle

    async def whole_chronicle(self, runtime: HistoryRuntime, until: Revision) -> Chronicle:
        """The whole chronicle up to a revision; other requests are answered meanwhile.

        Raises NotFound when the history is gone.
        """
        return await self.chronicles.whole(runtime, until)

    async def read_within(
        self, runtime: HistoryRuntime, until: Revision, seconds: float | None
    ) -> None:
        """Have the chronicle read up to a revision, and wait for that at most so many seconds."""
        await self.chronicles.read_within(runtime, until, seconds)

    async def begin_reading(self, runtime: HistoryRuntime) -> tuple[Revision, Revision]:
        """Have the chronicle of a long history read on in the background; checks no rights.

        Returns the last revision that has been read, and the last one there is.
        """
        return await self.chronicles.begin_reading(runtime)

    def check_length(self, revision: Revision) -> None:
        """Raise TooLarge for a history that is too long for a download from a server."""
        most = self._limits.report_events_max
        if revision > most:
            raise TooLarge(
                f"{revision} events are more than {most}: use redra report, or an earlier moment"
            )

    async def why(self, inquiry: Inquiry) -> ObjectExplanation:
        """The reasons for the state of an object: its decision, with all reasons computed again."""
        return await self.explained(inquiry, question_of(inquiry))

    async def explained(self, inquiry: Inquiry, question: Question) -> ObjectExplanation:
        """The answer to a why question, about the history and the moment of a request."""
        runtime = inquiry.runtime
        reader = inquiry.reader()
        reader.check_all(WORKED_OUT_FROM)
        key = await find_key(runtime.log, runtime.info, question, runtime.views.objects)
        reader.check(key)
        async with self._explanations:
            views = await self.views(inquiry)
            explainer = Explainer(
                runtime.log,
                await runtime.as_of(views.revision),
                views,
                self._compilers.of(views.profile),
                views.profile,
                past=self._past(runtime),
                bounds=self._limits.explain,
                blast_bounds=self._limits.blast,
                sight=reader.sight(key.namespace or "default"),
            )
            return await explainer.why(question, await self.time(inquiry, views))

    def _past(self, runtime: HistoryRuntime) -> PastMoments:
        name = runtime.info.name
        return PastMoments(
            views=partial(self._histories.at, name),
            devices=partial(self._histories.devices_at, name),
        )

    async def _evidence(
        self, inquiry: Inquiry, views: LiveViews, reader: HistoryReader
    ) -> ExplainedMoment:
        runtime = inquiry.runtime
        info = await runtime.as_of(views.revision)
        return ExplainedMoment(
            log=runtime.log,
            info=info,
            views=views,
            past=self._past(runtime),
            rules=scheduling_rules.of(info, views.profile, self._compilers.of(views.profile)),
            bounds=self._limits.explain,
            blast_bounds=self._limits.blast,
            sight=reader.sight(),
            time=await self.time(inquiry, views),
        )

    async def attempts(self, inquiry: Inquiry) -> AttemptList:
        """The scheduler's attempts for a pod up to the moment. Raises NotFound, BadRequest."""
        runtime, reader = inquiry.runtime, inquiry.reader()
        reader.check_all(WORKED_OUT_FROM)
        key = await subject_of(inquiry)
        if key[:2] != api_resources.PODS:
            raise BadRequest("only pods have attempts: give kind=pod")
        reader.check(key)
        views = await self.views(inquiry)
        evidence = await self._evidence(inquiry, views, reader)
        own = explained_attempts.made_by_scheduler(await evidence.decisions(key))[::-1]
        made = explained_attempts.of_decisions(own, await evidence.repeated_attempts(own))
        # Of what redra decided itself the log is read by the pod's name. Only a recorded pod may
        # have come again without its deletion, or have verdicts that no decision holds.
        created = None
        if made and not runtime.info.was_decided_elsewhere:
            created = await evidence.created(key)
        written: list[TriedPod] = []
        if created is None:
            created, written = await self._recorded_attempts(runtime, key, views.revision)
        limit = self._limits.attempts_max
        causes: dict[int, Event] = {
            event.revision: event
            for revision in explained_attempts.causes_of(made[-limit:])
            if (event := await evidence.event(revision)) is not None
        }
        items = attempts.of_attempts(made[-limit:], causes) if made else written[-limit:]
        count = len(made) if made else len(written)
        return AttemptList(
            history=runtime.info.name,
            revision=views.revision,
            namespace=key.namespace,
            name=key.name,
            created=timestamps.micro_text(created),
            is_decided=bool(made),
            items=tuple(items),
            omitted=count - len(items),
        )

    async def _recorded_attempts(
        self, runtime: HistoryRuntime, key: ObjectKey, until: Revision
    ) -> tuple[Instant, list[TriedPod]]:
        """The creation of a pod and the verdicts that were written about it. Raises NotFound."""
        chronicle = await self.chronicles.whole_with_states(runtime, until)
        lane = spans.up_to(chronicle.states.lane(key), until)
        if not lane:
            raise NotFound(
                f'pods "{key.name}" not found in namespace {key.namespace} up to revision {until}',
                resource=key.resource,
            )
        about = attempts.of_entries(chronicle.about(key, until=until))
        return spans.begin_of_last(lane)[1], about

    async def scan(self, inquiry: Inquiry, seconds: float | None = None) -> ScanReport:
        """The known incidents that show up to the moment. Raises TooLarge, InputError.

        With a time, the report may be complete only up to its `examined`.
        """
        # The report quotes Events about pods.
        inquiry.reader().check_all((*WORKED_OUT_FROM, api_resources.EVENTS))
        runtime, views = inquiry.runtime, await self.views(inquiry)
        labels = inquiry.request.parameter("labels").strip()
        now = await self.time(inquiry, views)
        return await self._scans.report(runtime, views.revision, now, labels, seconds)

    async def known_defects(
        self,
        inquiry: Inquiry,
        read: Callable[[str], Incident | None],
        seconds: float,
        *,
        begins: bool = True,
    ) -> KnownDefects:
        """The known defects for the findings of a request, as far as they are known in this time.

        `read` returns an incident of the gallery. With `begins` false, as for pages, no scan of the
        past begins: that would be one for each moment that a user passes. Nor does a long one,
        which would make other pages wait.
        """
        until = (await self.views(inquiry)).revision
        if not until:
            return KnownDefects()
        if not begins and not self._scans.is_kept(inquiry.runtime, until):
            return KnownDefects(note="known defects were not searched for at this moment")
        if not begins and not self._scans.is_near(inquiry.runtime, until):
            note = f"known defects were not searched for in all {until} events yet"
            return KnownDefects(note=note)
        try:
            report = await self.scan(inquiry, seconds)
        except (Forbidden, TooLarge) as problem:
            return KnownDefects(note=f"known defects were not searched for: {problem}")
        return defects.of_report(report, until, read, inquiry.request.parameter("namespace"))

    async def pace(self, inquiry: Inquiry) -> StartPace:
        """The durations of pod starts up to the moment, step by step."""
        inquiry.reader().check_all(WORKED_OUT_FROM)
        runtime, views = inquiry.runtime, await self.views(inquiry)
        wanted, now = lanes_wanted(inquiry), await self.time(inquiry, views)

        namespace, name, bounds = wanted.namespace, wanted.name, self._limits.pace
        until = views.revision

        def steps(chronicle: Chronicle) -> Iterator[None]:
            return starts.in_steps(
                chronicle, until, now, namespace=namespace, name=name, bounds=bounds
            )

        def pace_of(chronicle: Chronicle) -> StartPace:
            history = runtime.info.name
            return starts.of(
                history, chronicle, until, now, namespace=namespace, name=name, bounds=bounds
            )

        answer, _, _ = await self.chronicles.with_states(runtime, pace_of, steps)
        return answer

    async def object(self, inquiry: Inquiry) -> ObjectHistory:
        """An object at the moment, with the changes of each write. Raises NotFound."""
        runtime, reader = inquiry.runtime, inquiry.reader()
        views = await self.views(inquiry)
        key = await object_of(inquiry, views)
        reader.check(key)
        versions_max = self._limits.object_versions_max
        events = await runtime.log.read_object(
            runtime.info.id, key, until=views.revision, limit=versions_max + 1
        )
        events = [event for event in events if event.is_about_object]
        if not events:
            where = f" in namespace {key.namespace}" if key.namespace else ""
            raise NotFound(
                f'{key.resource} "{key.name}" not found{where} up to revision {views.revision}',
                resource=key.resource,
            )
        return object_history.of(
            views, views.revision, events, reader.sees, versions_max=versions_max
        )

    async def lanes(self, inquiry: Inquiry) -> Lanes:
        """The states of pods, their claims, devices and nodes over time, with marks of events."""
        reader = inquiry.reader()
        reader.check_all(WORKED_OUT_FROM)
        runtime, views = inquiry.runtime, await self.views(inquiry)
        wanted = lanes_wanted(inquiry)
        since, until = [
            await self._instant(runtime, inquiry.request.parameter(name)) for name in STRETCH
        ]
        if since is not None and until is not None and until < since:
            raise BadRequest("until is before since")
        now = await self._last_time(inquiry, views)
        timed = replace(wanted, since=since, until=until)

        def lanes_of(chronicle: Chronicle) -> Lanes:
            return lane_picture.of(
                runtime.info.name,
                chronicle,
                views.revision,
                now,
                timed,
                _visible(reader, chronicle),
                self._limits.lanes,
            )

        def steps(chronicle: Chronicle) -> Iterator[None]:
            return lane_picture.in_steps(chronicle, views.revision, now, timed)

        answer, chronicle, doubts = await self.chronicles.with_states(runtime, lanes_of, steps)
        return recorded_doubts.doubted(answer, chronicle.doubts(doubts, until=views.revision))

    async def trace(self, inquiry: Inquiry) -> ViewerTrace:
        """All events up to the moment, as tracks of a trace viewer."""
        reader = inquiry.reader()
        reader.check_all(WORKED_OUT_FROM)
        runtime, views = inquiry.runtime, await self.views(inquiry)
        self.check_length(views.revision)
        now = await self._last_time(inquiry, views)
        chronicle = await self.chronicles.whole_with_spans(runtime, views.revision)
        async with self._explanations:
            return await anyio.to_thread.run_sync(
                partial(
                    trace_events.of,
                    runtime.info.name,
                    chronicle,
                    views.revision,
                    now,
                    _visible(reader, chronicle),
                    self._limits.trace,
                    is_recorded=runtime.info.is_recorded,
                )
            )

    async def time(self, inquiry: Inquiry, views: LiveViews) -> Instant:
        """The instant for which the views are shown: the present lasts until now."""
        return await inquiry.runtime.time_of(views.revision, inquiry.moment)

    async def _last_time(self, inquiry: Inquiry, views: LiveViews) -> Instant:
        """The time of the last event up to the moment, with which pictures of events end."""
        runtime = inquiry.runtime
        return await time_of(runtime.log, runtime.info, views.revision)

    async def _instant(self, runtime: HistoryRuntime, moment: str) -> Instant | None:
        """The instant of a moment in a parameter; None when it is empty."""
        if not moment:
            return None
        if not is_revision(moment):
            return parse_instant(moment, runtime.end.instant)
        revision = Revision(int(moment))
        if not 0 < revision <= runtime.head.revision:
            last = runtime.head.revision
            raise BadRequest(f"there is no revision {moment}: the last one is {last}")
        return await time_of(runtime.log, runtime.info, revision)

    async def map(self, inquiry: Inquiry) -> DeviceMap:
        """Pools and devices with their holders, at the moment."""
        inquiry.reader().check_all(WORKED_OUT_FROM)
        runtime, views = inquiry.runtime, await self.views(inquiry)
        options = registry.options_from((await runtime.as_of(views.revision)).settings)
        quirks = registry.allocator_quirks_of(views.profile, options)
        wanted = pools_wanted(inquiry)
        answer = device_map.of(runtime.info.name, views, wanted, self._limits.map, quirks)
        doubts = await self.chronicles.doubts(runtime, views)
        return recorded_doubts.doubted(answer, doubts)

    async def timeline(self, inquiry: Inquiry) -> TimelinePage:
        """A filtered page of the timeline, newest entries first, with rows the reader may see."""
        views = await self.views(inquiry)
        chronicle, _ = await self.chronicles.of(inquiry.runtime)
        reader = inquiry.reader()
        return timeline_pages.read(
            inquiry.runtime.info.name,
            chronicle,
            views.revision,
            filter_of(inquiry),
            lambda rows: reader.rows("timeline", rows),
            before=Revision(integer(inquiry.request, "before", 0)),
            limit=integer(inquiry.request, "limit", self._limits.timeline.rows_max),
            bounds=self._limits.timeline,
        )

    async def find(self, inquiry: Inquiry) -> Hits:
        """The objects that match the query, also deleted ones, and that the reader may see."""
        views = await self.views(inquiry)
        query, sees = inquiry.request.parameter("q"), inquiry.reader().sees
        chronicle, _ = await self.chronicles.of(inquiry.runtime)
        gone = search.deleted(chronicle, views.objects, query, sees)
        return search.find(views.objects, query, sees, gone=gone)

    async def findings(self, inquiry: Inquiry) -> Findings:
        """The problems up to the moment, ranked; of a long history only up to their `examined`."""
        inquiry.reader().check_all(WORKED_OUT_FROM)
        runtime, namespace = inquiry.runtime, inquiry.request.parameter("namespace")
        views = await self.views(inquiry)
        await stepwise.decode(views, _READ_BY_FINDINGS)
        chronicle, doubts = await self.chronicles.of(runtime)
        now = await self.time(inquiry, views)
        place = runtime.life, views.revision, inquiry.moment, namespace
        kept = self._findings.recent(place) if inquiry.reader().is_unlimited else None
        if kept is not None and kept.is_recent(now):
            return kept.answer
        evidence = await self._evidence(inquiry, views, inquiry.reader())
        rules, sees_all = evidence.rules, inquiry.reader().sees_all
        reads_events = sees_all(api_resources.EVENTS)
        workload_kinds = [*filter(sees_all, workloads.KINDS)]
        unseen = uncertainty.unseen(doubts)
        unasked = partial(
            untried.shared_causes,
            views,
            rules,
            now,
            reads_events=reads_events,
            unseen=unseen,
            is_recorded=runtime.info.is_recorded,
        )
        causes = PodCauses(
            unasked=lambda _: "",
            reads_events=reads_events,
            workloads=workload_kinds,
            former=await selections.former_states(evidence, chronicle),
            reads_accounts=sees_all(api_resources.SERVICE_ACCOUNTS),
            judges_volumes=not runtime.info.is_decided_elsewhere
            and all(map(sees_all, volumes.KINDS)),
            sees=inquiry.reader().sees,
        )
        answer = await stepwise.worked_out(
            views,
            lambda: findings.collect_in_steps(
                runtime.info.name,
                views,
                chronicle,
                doubts,
                replace(causes, unasked=unasked()),
                rules=rules,
                now=now,
                items_max=self._limits.findings_max,
                namespace=namespace,
            ),
        )
        lacks = await self.chronicles.doubts(runtime, views)
        answer = recorded_doubts.doubted(answer, lacks)
        answer = await waiting.with_causes(evidence, answer, self._limits.findings_pods_max)
        life = runtime.life if inquiry.reader().is_unlimited else None
        answer = await former_findings.with_former_causes(evidence, answer, self._former, life)
        answer = await former_findings.with_authors(evidence, answer)
        if inquiry.reader().is_unlimited and place[1] == answer.revision == answer.examined:
            ended = await self.time(inquiry, views)
            self._findings[place] = KeptFindings(answer=answer, began=now, ended=ended)
        return answer


def _visible(reader: HistoryReader, chronicle: Chronicle) -> Callable[[Entry], bool]:
    """The predicate whether the reader may see an entry."""
    return lambda entry: (
        reader.is_unlimited or bool(reader.rows("timeline", [chronicle.row(entry)]))
    )
