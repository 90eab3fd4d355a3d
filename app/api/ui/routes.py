"""`/ui/`: from a path to a page.

`/ui/` lists the histories; `/ui/h/HISTORY[@MOMENT]/PART` is a page of one. Pages are only read; the
forms that are posted ask questions too long for an address, and change nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import anyio

from app.analysis import profiles as releases
from app.analysis.capacity import subjects
from app.analysis.diff.report import DiffReport
from app.analysis.explain.questions import Question
from app.api.access.authorization import Authorizer
from app.api.access.readers import WORKED_OUT_FROM
from app.api.kubernetes.paths import LANDING, Place
from app.api.redra.answers import (
    STRETCH,
    Answers,
    Asked,
    filter_of,
    integer,
    lanes_wanted,
    pools_wanted,
    question_of,
    subject_of,
)
from app.api.redra.routes import RedraApi, check_query
from app.api.server.limits import ApiLimits
from app.api.server.messages import Header, Request, Response, Stream
from app.api.ui import forms, framing, origins, reports
from app.api.ui.live import LivePages
from app.domain.errors import (
    Forbidden,
    InputError,
    MethodNotAllowed,
    NotFound,
    RedraError,
    Rejected,
)
from app.domain.log import Actor
from app.service.histories import Histories
from app.web import assets, links
from app.web.links import STATIC
from app.web.pages import (
    attempts,
    blast,
    capacity,
    compare,
    devices,
    find,
    findings,
    histories,
    lanes,
    objects,
    pace,
    rehearsal,
    scan,
    timeline,
    why,
)
from app.web.pages.compare import Tree

HTML = b"text/html; charset=utf-8"

HEADERS: tuple[Header, ...] = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        b"object-src 'none'",
    ),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-cache, private"),
)
"""No script or style but our own files, no frame, nothing from anywhere else."""

LIVE = "live"

PROPOSAL = "blast"

CAPACITY = "capacity"
"""Like the one before it, a page with a form that is posted."""

REPORT = "report"

_NO_GUESS: Header = (b"x-content-type-options", b"nosniff")
"""Refusals of every kind have it already."""

_KEPT: tuple[Header, ...] = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    _NO_GUESS,
)


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
        self._reports = anyio.CapacityLimiter(limits.reports_at_once_max)

    @property
    def answers(self) -> Answers:
        """Where the facts of the pages come from."""
        return self._api.answers

    def end_streams(self) -> None:
        """Let all pages that follow a history end their streams, because the server stops."""
        self._live.end()

    async def answer(self, request: Request, place: Place, actor: Actor) -> Response | Stream:
        """The page for whom the gate has let in. Raises Rejected, InputError, LogError."""
        check_query(request)
        if place.path == "/redra/v1/histories":
            if request.method not in ("GET", "HEAD"):
                raise MethodNotAllowed("this page is only read")
            items = [one.model_dump() for one in await self._api.histories(actor)]
            return shown(histories.page(items))
        part = place.path.rpartition("/")[2]
        if part == LIVE and request.method == "GET":
            return self._live.follow(await self._histories.open(place.history), place.moment)
        make = _PARTS.get(part)
        if make is None:
            raise NotFound(f'there is no page "{part[:64]}"')
        if request.method == "POST" and part in _FORMS:
            origins.check_own(request)
            make = _FORMS[part]
        elif request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("this page is only read")
        if "moment" in request.query:
            return _pinned(request, place, part)
        runtime = await self._histories.open(place.history)
        asked = Asked(
            request=request,
            runtime=runtime,
            rest="",
            moment=place.moment,
            reader=partial(self._authorizer.reader, runtime, actor),
            actor=actor,
        )
        if part == REPORT:
            return _to_take_away(asked, await make(self, asked))
        return shown(await make(self, asked))

    async def _findings(self, asked: Asked) -> bytes:
        answer = await self.answers.findings(asked)
        return findings.page(await framing.frame(self.answers, asked, LANDING), answer)

    async def _why(self, asked: Asked) -> bytes:
        answer = await self.answers.why(asked)
        question = question_of(asked)
        parameters = {
            "kind": question.kind,
            "namespace": question.namespace,
            "name": question.name,
            "node": question.node,
            "help": "true" if question.help else "",
        }
        key = subject_of(asked)
        frame = await framing.frame(self.answers, asked, "why", parameters, key)
        return why.page(frame, answer, key, parameters)

    async def _object(self, asked: Asked) -> bytes:
        answer = await self.answers.object(asked)
        parameters = links.subject(answer.key)
        frame = await framing.frame(self.answers, asked, "object", parameters, answer.key)
        return objects.page(frame, answer)

    async def _lanes(self, asked: Asked) -> bytes:
        answer, wanted = await self.answers.lanes(asked), lanes_wanted(asked)
        stretch = {name: asked.request.parameter(name) for name in STRETCH}
        parameters = {"namespace": wanted.namespace, "name": wanted.name, **stretch}
        return lanes.page(
            await framing.frame(self.answers, asked, "lanes", parameters), answer, wanted, stretch
        )

    async def _map(self, asked: Asked) -> bytes:
        answer, wanted = await self.answers.map(asked), pools_wanted(asked)
        parameters = {"driver": wanted.driver, "pool": wanted.pool, "node": wanted.node}
        return devices.page(
            await framing.frame(self.answers, asked, "map", parameters), answer, wanted
        )

    async def _timeline(self, asked: Asked) -> bytes:
        answer = await self.answers.timeline(asked)
        wanted, before = filter_of(asked), integer(asked.request, "before", 0)
        parameters = timeline.parameters_of(wanted)
        frame = await framing.frame(self.answers, asked, "timeline", parameters)
        kinds = (await self.answers.chronicle(asked.runtime)).kinds()
        return timeline.page(frame, answer, wanted, kinds, before)

    async def _attempts(self, asked: Asked) -> bytes:
        answer = await self.answers.attempts(asked)
        key = subject_of(asked)
        frame = await framing.frame(self.answers, asked, "attempts", links.subject(key), key)
        return attempts.page(frame, answer, key)

    async def _scan(self, asked: Asked) -> bytes:
        sightings = await self.answers.scan(asked)
        return scan.page(await framing.frame(self.answers, asked, "scan"), sightings)

    async def _pace(self, asked: Asked) -> bytes:
        answer, wanted = await self.answers.pace(asked), lanes_wanted(asked)
        parameters = {"namespace": wanted.namespace, "name": wanted.name}
        return pace.page(
            await framing.frame(self.answers, asked, "pace", parameters), answer, wanted
        )

    async def _compare(self, asked: Asked) -> bytes:
        request, own = asked.request, asked.runtime.info.name
        names = ("with", "withAt", "by", "within")
        parameters = {name: request.parameter(name) for name in names}
        others = [one.name for one in await self._api.histories(asked.actor) if one.name != own]
        report = None
        if parameters["with"]:
            check = partial(self._api.check_compared, asked.actor, asked.runtime)
            report = await self._api.diffs.report(request, asked.runtime, check, asked.moment)
        first: tuple[Tree, ...] = ()
        if isinstance(report, DiffReport):
            first = await self._first(asked, report, parameters["with"])
        frame = await framing.frame(self.answers, asked, "compare", parameters)
        return compare.page(frame, others, parameters, report, first)

    async def _first(self, asked: Asked, report: DiffReport, other: str) -> tuple[Tree, ...]:
        """The reasons on both sides where they part first, as of the decisions of then."""
        trees = []
        for course, side in compare.first_of(report):
            runtime = asked.runtime
            if side is report.b:
                runtime = await self._histories.open(other)
            if course is None:
                trees.append(Tree(links=links.Links(history=runtime.info.name), course=None))
                continue
            there = replace(
                asked,
                runtime=runtime,
                moment=str(compare.moment_of(course)),
                reader=partial(self._authorizer.reader, runtime, asked.actor),
            )
            question = Question(kind="pod", namespace=course.key.namespace, name=course.key.name)
            place = links.Links(history=runtime.info.name, moment=there.moment)
            try:
                answer = await self.answers.explained(there, question)
            except NotFound:
                answer = None
            trees.append(Tree(links=place, course=course, answer=answer))
        return tuple(trees)

    async def _rehearsal(self, asked: Asked) -> bytes:
        request = asked.request
        parameters = {name: request.parameter(name) for name in ("to", "gate", "quirk")}
        self._api.check_rehearsed(asked.actor, asked.runtime)
        report = None
        if parameters["to"]:
            report = await self._api.rehearsals.report(request, asked.runtime, asked.moment)
        frame = await framing.frame(self.answers, asked, "rehearsal", parameters)
        return rehearsal.page(frame, releases.names(), parameters, report)

    async def _blast(self, asked: Asked) -> bytes:
        asked.reader().check_all(WORKED_OUT_FROM)
        answer = None
        if asked.request.parameter("name"):
            answer = await self._api.blasts.of_rule(asked.request, asked.runtime, asked.moment)
        return blast.page(await framing.frame(self.answers, asked, PROPOSAL), "", "", answer)

    async def _proposed(self, asked: Asked) -> bytes:
        """What the objects of a form would do; nothing is written."""
        asked.reader().check_all(WORKED_OUT_FROM)
        manifest, deletions = await forms.proposal(asked.request, self._limits)
        answer, problem = None, ""
        try:
            changes = forms.changes(manifest, deletions, self._limits)
            blasts, reader = self._api.blasts, asked.reader()
            answer = await blasts.of_changes(asked.runtime, asked.moment, changes, reader)
        except (Rejected, InputError) as refusal:
            problem = getattr(refusal, "message", "") or str(refusal)
        frame = await framing.frame(self.answers, asked, PROPOSAL)
        return blast.page(frame, manifest, deletions, answer, problem)

    async def _capacity(self, asked: Asked) -> bytes:
        answer = await self._api.capacities.capacity(asked)
        return capacity.page(await framing.frame(self.answers, asked, CAPACITY), answer)

    async def _fitting(self, asked: Asked) -> bytes:
        """How many copies fit of what a form holds, or of all that there is; nothing is written."""
        manifest, _ = await forms.proposal(asked.request, self._limits)
        capacities, fit, problem = self._api.capacities, None, ""
        try:
            if manifest.strip():
                trees = forms.documents(manifest, self._limits)
                fit = await capacities.fit_of(asked, subjects.of_documents(trees, ""))
            else:
                fit = await capacities.fit(asked)
        except Forbidden:
            raise
        except (Rejected, InputError) as refusal:
            problem = getattr(refusal, "message", "") or str(refusal)
        answer = await capacities.capacity(asked)
        frame = await framing.frame(self.answers, asked, CAPACITY)
        return capacity.page(frame, answer, manifest, fit, problem)

    async def _report(self, asked: Asked) -> bytes:
        def make(part: str, of_part: Asked) -> Awaitable[bytes]:
            return _PARTS[part](self, of_part)

        async with self._reports:
            return await reports.compose(self.answers, asked, make, self._limits.report)

    async def _find(self, asked: Asked) -> bytes:
        answer = await self.answers.find(asked)
        frame = await framing.frame(self.answers, asked, "find", {"q": answer.query})
        return find.page(frame, answer)


_Make = Callable[[Pages, Asked], Awaitable[bytes]]

_PARTS: dict[str, _Make] = {
    LANDING: Pages._findings,
    "attempts": Pages._attempts,
    PROPOSAL: Pages._blast,
    CAPACITY: Pages._capacity,
    "compare": Pages._compare,
    "rehearsal": Pages._rehearsal,
    "pace": Pages._pace,
    "scan": Pages._scan,
    "find": Pages._find,
    "lanes": Pages._lanes,
    "map": Pages._map,
    "object": Pages._object,
    REPORT: Pages._report,
    "timeline": Pages._timeline,
    "why": Pages._why,
}


_FORMS: dict[str, _Make] = {PROPOSAL: Pages._proposed, CAPACITY: Pages._fitting}
"""What is made of the forms that are posted."""


def static(path: str) -> Response | None:
    """A file that pages load, which is the same for everybody; None when there is none."""
    asset = assets.all_assets().get(path.removeprefix(STATIC))
    if asset is None:
        return None
    return Response(asset.content, content_type=asset.content_type, headers=_KEPT)


def shown(page: bytes, code: int = 200) -> Response:
    """A page as a response."""
    headers = HEADERS if code >= 400 else (*HEADERS, _NO_GUESS)
    return Response(page, status=code, content_type=HTML, headers=headers)


def _to_take_away(asked: Asked, report: bytes) -> Response:
    """A report as a file: it has its style in it, so no browser shows it as a page of ours."""
    revision = f"-at-{asked.moment}" if asked.moment else ""
    name = f"{asked.runtime.info.name}{revision}.html"
    attachment = f'attachment; filename="{quote(name, safe="")}"'
    headers = (*HEADERS, _NO_GUESS, (b"content-disposition", attachment.encode()))
    return Response(report, content_type=HTML, headers=headers)


def problem(refusal: Exception, code: int) -> Response:
    """The page that says why there is none; of a mistake of ours it tells nothing more."""
    title = _TITLES.get(code, "Something is wrong")
    text = f"Internal error: {type(refusal).__name__}"
    if isinstance(refusal, RedraError):
        text = getattr(refusal, "message", "") or str(refusal)
    return shown(histories.problem(code, title, text), code)


_TITLES = {
    400: "This cannot be asked",
    401: "Who are you?",
    403: "Not for you",
    404: "Not found",
    405: "Pages are only read",
    503: "Not at present",
}


def _pinned(request: Request, place: Place, part: str) -> Response:
    """Where a form leads that names a moment: the moment belongs into the path."""
    moment = request.parameter("moment").strip()
    at = f"@{quote(moment, safe=':')}" if moment else ""
    kept = [(name, value) for name, value in framing.pairs(request) if name != "moment"]
    target = f"/ui/h/{quote(place.history)}{at}/{'' if part == LANDING else part}"
    location = target + framing.query_text(kept)
    return Response(
        b"", status=303, content_type=HTML, headers=((b"location", location.encode()), *HEADERS)
    )
