"""`/ui/`: maps paths to pages.

`/ui/` lists the histories; `/ui/h/HISTORY[@MOMENT]/PART` is a page of one history, and
`/ui/jobs` those of sweeps. Pages are read-only; posted forms are questions that are too long for
an address, or make a history or a job of their own; none changes the history.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote

import anyio
import msgspec

from app.analysis import behaviours as numbered
from app.analysis import timeline_pages
from app.analysis.capacity import subjects
from app.analysis.diff.answers import ComparedPage, DiffForm
from app.api.access.authorization import Authorizer
from app.api.access.readers import WORKED_OUT_FROM
from app.api.kubernetes.paths import LANDING, RequestedTimeline
from app.api.redra.answers import Answers
from app.api.redra.inquiries import (
    STRETCH,
    Inquiry,
    filter_of,
    integer,
    lanes_wanted,
    pools_wanted,
    question_of,
    subject_of,
)
from app.api.redra.linting import ignored_rules
from app.api.redra.routes import RedraApi
from app.api.server import reading
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response, Stream
from app.api.ui import forks, forms, framing, origins, parameters, reports
from app.api.ui.comparisons import ComparedPages
from app.api.ui.jobs import JobPages, shown_page
from app.api.ui.live import LivePages
from app.api.ui.responses import HEADERS, HTML, NO_GUESS, shown
from app.api.ui.sweeps import BESIDE, SweepPages
from app.api.ui.unready import JOBS, UnreadyPages
from app.domain.errors import Forbidden, InputError, MethodNotAllowed, NotFound, Rejected
from app.domain.log import Actor
from app.domain.values import api_resources
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime
from app.web import links
from app.web.pages import (
    again,
    attempts,
    behaviours,
    blast,
    capacity,
    devices,
    find,
    findings,
    histories,
    lanes,
    linted,
    objects,
    pace,
    scan,
    timeline,
    unready,
    why,
)
from app.web.pages.jobs import ShownJob

LIVE = "live"

PROPOSAL = "blast"

CAPACITY = "capacity"
"""A page with a posted form, like `PROPOSAL`."""

REPORT = "report"

_ACCEPTED = 202
"""The status of a page that is being worked out: it is there, but not the answer yet."""


class Pages:
    """Answers requests below `/ui/`."""

    def __init__(
        self, stored: Histories, api: RedraApi, authorizer: Authorizer, limits: ApiLimits
    ) -> None:
        self._histories = stored
        self._api = api
        self._authorizer = authorizer
        self._limits = limits
        self._live = LivePages(limits.live)
        self._unready = UnreadyPages(limits.waits, limits.diffs_at_once_max)
        self._compared = ComparedPages(api, stored, authorizer, self._unready)
        self._sweeps = SweepPages(api, limits)
        self._jobs = JobPages(api.jobs, api.answers, limits, self._unready)
        self._reports = anyio.CapacityLimiter(limits.reports_at_once_max)

    @property
    def answers(self) -> Answers:
        """The source of the facts in the pages."""
        return self._api.answers

    @property
    def _part_seconds(self) -> float:
        """The time after which a page shows the part of an answer that is known."""
        return self._limits.waits.seconds / 2

    def end_streams(self) -> None:
        """End the streams of all pages that follow a history, because the server stops."""
        self._live.end()

    async def answer(
        self, request: HttpRequest, place: RequestedTimeline, actor: Actor
    ) -> Response | Stream:
        """The page for an admitted user. Raises Rejected, InputError, LogError."""
        reading.check_query(request)
        if place.path == "/redra/v1/histories":
            parameters.check(request, "")
            if request.method not in ("GET", "HEAD"):
                raise MethodNotAllowed("this page is read-only")
            items = [one.model_dump() for one in await self._api.histories(actor)]
            return shown(histories.page(items))
        if place.path.startswith(BESIDE):
            return await self._sweeps.answer(request, place.path, actor)
        part = place.path.rpartition("/")[2]
        if part in parameters.NAMES:
            parameters.check(request, part)
        if part == LIVE and request.method == "GET":
            return self._live.follow(await self._histories.open(place.history), place.moment)
        make = _PARTS.get(part)
        if make is None:
            raise NotFound(f'there is no page "{part[:64]}"')
        if request.method == "POST" and part == JOBS:
            opened = await self._histories.open(place.history)
            return await self._jobs.cancel(self._inquiry(request, opened, place.moment, actor))
        if request.method == "POST" and part in _FORMS:
            origins.check_own(request)
            make = _FORMS[part]
        elif request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("this page is read-only")
        if "moment" in request.query:
            return _pinned(request, place, part)
        is_kept = request.method == "POST" or part == REPORT
        seconds = None if is_kept else self._limits.waits.opening_seconds
        runtime = await self._histories.open_within(place.history, seconds)
        if runtime is None:
            return await self.opening(request, place)
        inquiry = self._inquiry(request, runtime, place.moment, actor)
        if part == REPORT:
            return _to_take_away(inquiry, await make(self, inquiry))
        if part == forks.FORK and request.method == "POST":
            return await forks.answer(self._api, inquiry, self._limits, PROPOSAL)
        read, last = await self.answers.begin_reading(runtime)
        page = await self._unready.page(inquiry, part, partial(make, self, inquiry))
        if page is not None:
            return shown(page)
        before = self._unready.before(inquiry)
        begun = self._unready.under_way(inquiry)
        job = None if begun is None else shown_page(begun)
        ahead = 0 if begun is None else self._unready.ahead(begun)
        turn = unready.PlaceInLine(before=before, ahead=ahead)
        return _not_ready(inquiry, part, read=read, last=last, turn=turn, job=job)

    def _inquiry(
        self, request: HttpRequest, runtime: HistoryRuntime, moment: str, actor: Actor
    ) -> Inquiry:
        return Inquiry(
            request=request,
            runtime=runtime,
            rest="",
            moment=moment,
            reader=partial(self._authorizer.reader, runtime, actor),
            actor=actor,
        )

    async def opening(self, request: HttpRequest, place: RequestedTimeline) -> Response:
        """The page that says that the history is being opened. Raises NotFound."""
        part = place.path.rpartition("/")[2]
        if part not in _PARTS:
            raise NotFound(f'there is no page "{part[:64]}"')
        head = await self._histories.head(await self._histories.info(place.history))
        there = links.Links(history=place.history, moment=place.moment)
        again = there.to(part, **dict(framing.pairs(request)))
        return shown(unready.opening(there, part, again, head.revision), _ACCEPTED)

    async def _findings(self, inquiry: Inquiry) -> bytes:
        answer = await self.answers.findings(inquiry)
        frame = await framing.frame(self.answers, inquiry, LANDING)
        defects = await self.answers.known_defects(
            inquiry, self._api.incident, self._part_seconds, begins=False
        )
        namespace = inquiry.request.parameter("namespace")
        objects = (await self.answers.views(inquiry)).objects
        is_empty = not any(objects.count(*kind) for kind in _LOOKED_AT)
        return findings.page(frame, answer, namespace, defects, is_empty=is_empty)

    async def _why(self, inquiry: Inquiry) -> bytes:
        answer = await self.answers.why(inquiry)
        question = question_of(inquiry)
        parameters = {
            "kind": question.kind,
            "namespace": question.namespace,
            "name": question.name,
            "node": question.node,
            "help": "true" if question.help else "",
        }
        key = await subject_of(inquiry)
        frame = await framing.frame(self.answers, inquiry, "why", parameters, key)
        return why.page(frame, answer, key, parameters)

    async def _object(self, inquiry: Inquiry) -> bytes:
        answer = await self.answers.object(inquiry)
        parameters = links.subject(answer.key)
        frame = await framing.frame(self.answers, inquiry, "object", parameters, answer.key)
        chronicle = await self.answers.chronicle(inquiry.runtime)
        unrecorded = [
            one.key
            for one in answer.relations
            if not one.exists
            and not timeline_pages.is_recorded(chronicle, one.key, answer.revision)
        ]
        return objects.page(frame, answer, unrecorded)

    async def _lanes(self, inquiry: Inquiry) -> bytes:
        answer, wanted = await self.answers.lanes(inquiry), lanes_wanted(inquiry)
        stretch = {name: inquiry.request.parameter(name) for name in STRETCH}
        parameters = {"namespace": wanted.namespace, "name": wanted.name, **stretch}
        return lanes.page(
            await framing.frame(self.answers, inquiry, "lanes", parameters), answer, wanted, stretch
        )

    async def _map(self, inquiry: Inquiry) -> bytes:
        answer, wanted = await self.answers.map(inquiry), pools_wanted(inquiry)
        parameters = {"driver": wanted.driver, "pool": wanted.pool, "node": wanted.node}
        objects = (await self.answers.views(inquiry)).objects
        registered = {key.name for key in objects.keys(*api_resources.NODES)}
        frame = await framing.frame(self.answers, inquiry, "map", parameters)
        return devices.page(frame, answer, wanted, registered)

    async def _timeline(self, inquiry: Inquiry) -> bytes:
        answer = await self.answers.timeline(inquiry)
        wanted, before = filter_of(inquiry), integer(inquiry.request, "before", 0)
        parameters = timeline.parameters_of(wanted)
        frame = await framing.frame(self.answers, inquiry, "timeline", parameters)
        chronicle = await self.answers.chronicle(inquiry.runtime)
        unrecorded = timeline_pages.unrecorded(chronicle, answer)
        kinds = chronicle.kinds()
        if not inquiry.reader().is_unlimited:
            # All kinds would reveal what happened to objects that this reader may not see.
            kinds = timeline_pages.kinds_of(answer)
        return timeline.page(frame, answer, wanted, kinds, before, unrecorded)

    async def _attempts(self, inquiry: Inquiry) -> bytes:
        answer = await self.answers.attempts(inquiry)
        key = await subject_of(inquiry)
        frame = await framing.frame(self.answers, inquiry, "attempts", links.subject(key), key)
        return attempts.page(frame, answer, key)

    async def _scan(self, inquiry: Inquiry) -> bytes:
        report = await self.answers.scan(inquiry, self._part_seconds)
        labels = inquiry.request.parameter("labels").strip()
        frame = await framing.frame(self.answers, inquiry, "scan", {"labels": labels})
        return scan.page(frame, report, self._api.incident, labels)

    async def _lint(self, inquiry: Inquiry) -> bytes:
        report = await self._api.lint(inquiry)
        parameters = {name: inquiry.request.parameter(name) for name in ("ignore", "profile")}
        frame = await framing.frame(self.answers, inquiry, "lint", parameters)
        return linted.page(frame, report, ignored_rules(inquiry.request))

    async def _behaviours(self, inquiry: Inquiry) -> bytes:
        views = await self.answers.views(inquiry)
        info = await inquiry.runtime.as_of(views.revision)
        rows = numbered.behaviours(info.settings)
        frame = await framing.frame(self.answers, inquiry, "behaviours")
        return behaviours.page(frame, rows)

    async def _pace(self, inquiry: Inquiry) -> bytes:
        answer, wanted = await self.answers.pace(inquiry), lanes_wanted(inquiry)
        parameters = {"namespace": wanted.namespace, "name": wanted.name}
        return pace.page(
            await framing.frame(self.answers, inquiry, "pace", parameters), answer, wanted
        )

    async def _compare(self, inquiry: Inquiry) -> bytes:
        return await self._compared.compare(inquiry)

    async def _again(self, inquiry: Inquiry) -> bytes:
        request, runtime = inquiry.request, inquiry.runtime
        self._api.check_rehearsed(inquiry.actor, runtime)
        wanted = {name: request.parameter(name) for name in parameters.NAMES["again"]}
        report: ComparedPage | None = None
        if wanted["by"]:
            form, report_progress = DiffForm.PAGE, partial(self._unready.report_progress, inquiry)
            answer = await self._api.agains.answer(
                request, runtime, inquiry.moment, form, report_progress
            )
            report = msgspec.convert(answer, ComparedPage)
        frame = await framing.frame(self.answers, inquiry, "again", wanted)
        return again.page(frame, wanted, report)

    async def _rehearsal(self, inquiry: Inquiry) -> bytes:
        return await self._compared.rehearsal(inquiry)

    async def _of_jobs(self, inquiry: Inquiry) -> bytes:
        return await self._jobs.page(inquiry)

    async def _blast(self, inquiry: Inquiry) -> bytes:
        inquiry.reader().check_all(WORKED_OUT_FROM)
        answer = None
        if inquiry.request.parameter("name") or inquiry.request.parameter("kind"):
            answer = await self._api.blasts.of_rule(
                inquiry.request, inquiry.runtime, inquiry.moment, inquiry.reader()
            )
        frame = await framing.frame(self.answers, inquiry, PROPOSAL)
        return blast.page(frame, blast.Typed(), answer)

    async def _proposed(self, inquiry: Inquiry) -> bytes:
        """The page with the effects of the objects in a form; nothing is written."""
        inquiry.reader().check_all(WORKED_OUT_FROM)
        typed = await forms.proposal(inquiry.request, self._limits)
        answer, problem = None, ""
        try:
            changes = forms.changes(typed, self._limits)
            blasts, reader = self._api.blasts, inquiry.reader()
            answer = await blasts.of_changes(
                inquiry.request, inquiry.runtime, inquiry.moment, changes, reader
            )
        except (Rejected, InputError) as refusal:
            problem = getattr(refusal, "message", "") or str(refusal)
        frame = await framing.frame(self.answers, inquiry, PROPOSAL)
        return blast.page(frame, typed, answer, problem)

    async def _capacity(self, inquiry: Inquiry) -> bytes:
        answer = await self._api.capacities.capacity(inquiry, self._part_seconds)
        return capacity.page(await framing.frame(self.answers, inquiry, CAPACITY), answer)

    async def _fitting(self, inquiry: Inquiry) -> bytes:
        """The page with the number of copies that fit: of a form's objects, or of all subjects."""
        manifest = (await forms.proposal(inquiry.request, self._limits)).manifest
        capacities, fit, problem = self._api.capacities, None, ""
        try:
            if manifest.strip():
                trees = forms.documents(manifest, self._limits)
                fit = await capacities.fit_of(inquiry, subjects.of_documents(trees, ""))
            else:
                fit = await capacities.fit(inquiry)
        except Forbidden:
            raise
        except (Rejected, InputError) as refusal:
            problem = getattr(refusal, "message", "") or str(refusal)
        answer = await capacities.capacity(inquiry, self._part_seconds)
        frame = await framing.frame(self.answers, inquiry, CAPACITY)
        return capacity.page(frame, answer, manifest, fit, problem)

    async def _report(self, inquiry: Inquiry) -> bytes:
        def make(part: str, of_part: Inquiry) -> Awaitable[bytes]:
            return _PARTS[part](self, of_part)

        async with self._reports:
            return await reports.compose(self.answers, inquiry, make, self._limits.report)

    async def _find(self, inquiry: Inquiry) -> bytes:
        answer = await self.answers.find(inquiry)
        frame = await framing.frame(self.answers, inquiry, "find", {"q": answer.query})
        return find.page(frame, answer)


_Make = Callable[[Pages, Inquiry], Awaitable[bytes]]

_PARTS: dict[str, _Make] = {
    LANDING: Pages._findings,
    "again": Pages._again,
    "behaviours": Pages._behaviours,
    "attempts": Pages._attempts,
    PROPOSAL: Pages._blast,
    forks.FORK: Pages._blast,
    CAPACITY: Pages._capacity,
    "compare": Pages._compare,
    "rehearsal": Pages._rehearsal,
    JOBS: Pages._of_jobs,
    "pace": Pages._pace,
    "scan": Pages._scan,
    "find": Pages._find,
    "lanes": Pages._lanes,
    "lint": Pages._lint,
    "map": Pages._map,
    "object": Pages._object,
    REPORT: Pages._report,
    "timeline": Pages._timeline,
    "why": Pages._why,
}


_LOOKED_AT = (
    api_resources.PODS, api_resources.RESOURCE_CLAIMS, api_resources.RESOURCE_SLICES
)  # fmt: skip
"""Without objects of these kinds, there is nothing that the landing page could find wrong."""

_FORMS: dict[str, _Make] = {
    PROPOSAL: Pages._proposed, CAPACITY: Pages._fitting, forks.FORK: Pages._blast
}  # fmt: skip
"""The handlers of posted forms."""


def _not_ready(
    inquiry: Inquiry,
    part: str,
    *,
    read: int,
    last: int,
    turn: unready.PlaceInLine,
    job: ShownJob | None = None,
) -> Response:
    """The page that says that another one is being made, and leads to it.

    `job` is that of a page that may take minutes.
    """
    there = links.Links(history=inquiry.runtime.info.name, moment=inquiry.moment)
    again = there.to(part, **dict(framing.pairs(inquiry.request)))
    page = unready.page(there, part, again, read=read, last=last, turn=turn, job=job)
    return shown(page, _ACCEPTED)


def _to_take_away(inquiry: Inquiry, report: bytes) -> Response:
    """A report as a download; it contains its own style, so browsers must not show it as a page."""
    revision = f"-at-{inquiry.moment}" if inquiry.moment else ""
    name = f"{inquiry.runtime.info.name}{revision}.html"
    attachment = f'attachment; filename="{quote(name, safe="")}"'
    headers = (*HEADERS, NO_GUESS, (b"content-disposition", attachment.encode()))
    return Response(report, content_type=HTML, headers=headers)


def _pinned(request: HttpRequest, place: RequestedTimeline, part: str) -> Response:
    """The redirect of a form with a moment to the path with this moment."""
    moment = request.parameter("moment").strip()
    at = f"@{quote(moment, safe=':')}" if moment else ""
    kept = [(name, value) for name, value in framing.pairs(request) if name != "moment"]
    target = f"/ui/h/{quote(place.history)}{at}/{'' if part == LANDING else part}"
    location = target + framing.query_text(kept)
    return Response(
        b"", status=303, content_type=HTML, headers=((b"location", location.encode()), *HEADERS)
    )
