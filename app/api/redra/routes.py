"""`/redra/v1`: histories, the log, views, decisions, health."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio.lowlevel
import anyio.to_thread
import msgspec
from pydantic import BaseModel

from app.analysis.diff.answers import DiffForm
from app.analysis.lint.linting import LintReport
from app.api.access.authorization import Authorizer, Gate
from app.api.access.readers import WORKED_OUT_FROM
from app.api.kubernetes import paths, status
from app.api.kubernetes.timelines import views_at
from app.api.redra import document, log_lines, managing, models, other_histories, views
from app.api.redra.answers import Answers
from app.api.redra.blast import BlastApi
from app.api.redra.capacity import CapacityApi
from app.api.redra.differences import AgainApi, DiffApi
from app.api.redra.entries import EntriesApi
from app.api.redra.inquiries import Inquiry, integer, with_meaning, with_meanings
from app.api.redra.jobs import JobsApi
from app.api.redra.linting import LintApi
from app.api.redra.managing import ManagingApi
from app.api.redra.rehearsals import RehearsalApi
from app.api.redra.replaying import ReplayApi
from app.api.redra.server_parts import Beside
from app.api.server import reading
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response, Stream
from app.domain.controllers import switching
from app.domain.errors import BadRequest, InputError, NotFound, RevisionTooLarge
from app.domain.log import Actor, HistoryInfo, Revision
from app.domain.objects import profile as profiles
from app.domain.values import timestamps
from app.service import moments
from app.service.histories import Histories
from app.service.replays import heads
from app.service.runtime import HistoryRuntime

_LINES = b"application/x-ndjson"
_KEPT_VIEWS_MAX = 64


class RedraApi:
    """Answers requests below `/redra/v1`."""

    def __init__(
        self,
        histories: Histories,
        limits: ApiLimits,
        gate: Gate,
        authorizer: Authorizer,
        beside: Beside,
    ) -> None:
        self._histories = histories
        self._sign = beside.sign
        self.incident = beside.incident
        self._holders = beside.holders
        self._lints = LintApi(beside.lint, limits)
        self.jobs = JobsApi(histories, limits, authorizer, beside)
        self._gate = gate
        self._authorizer = authorizer
        self._limits = limits
        self.diffs = DiffApi(histories, limits, gate, beside)
        self.rehearsals = RehearsalApi(histories, limits, beside, self.jobs)
        self.agains = AgainApi(limits, beside, self.jobs)
        self.managing = ManagingApi(histories, limits, gate, authorizer)
        self._replays = ReplayApi(beside.players, limits)
        self.answers = Answers(histories, limits)
        self.blasts = BlastApi(histories, self.answers.chronicles, limits)
        self.capacities = CapacityApi(histories, self.answers, limits)
        self._timelines = EntriesApi(
            histories, at_once_max=limits.timelines_at_once_max, page_max=limits.log_page_max
        )
        self._views = views.ViewTables(kept_max=_KEPT_VIEWS_MAX)

    async def answer(self, request: HttpRequest, actor: Actor) -> Response | Stream:
        """The response for an admitted user; 404 for paths that are not served.

        Raises Rejected, also Forbidden for parts that the history's rules hide from the user.
        """
        reading.check_query(request)
        parts = paths.parts_of_redra(request.path)
        if parts[:1] != ["v1"]:
            return status.page_not_found()
        reading.check_parameters(request, document.parameters(request.method, tuple(parts[1:])))
        match request.method, parts[1:]:
            case "GET", []:
                return _answer(models.Index(paths=document.paths()))
            case "GET", ["openapi.json"]:
                return Response(document.document())
            case _, ["jobs" | "sweep" | "incidents", *_]:
                return await self.jobs.answer(request, parts[1:], actor)
            case _, ["histories", _, "jobs" | "minimise" | "rehearse" | "export", *_]:
                return await self.jobs.answer(request, parts[1:], actor)
            case "GET", ["workers"]:
                return await self._workers(actor)
            case "GET", ["histories"]:
                return _answer(models.HistoryList(items=await self.histories(actor)))
            case "POST", ["histories"]:
                made = await self.managing.create(request)
                return _answer(await self._history(made), code=201)
            case "GET", ["deleted"]:
                return _answer(await self.managing.deleted())
            case "GET", ["histories", name]:
                return _answer(await self._history(await self._histories.info(name)))
            case "DELETE", ["histories", name]:
                doomed = await self._histories.find(name)
                tombstone = await self.managing.delete(name, actor)
                if doomed is not None:
                    await self.jobs.forget(doomed.id)
                return _answer(tombstone)
            case "POST", ["histories", name, "rename" | "copy" | "fork" as what]:
                return await self._manage(request, name, what, actor)
            case "POST", ["histories", name, "replay"]:
                await self._gate.check_may_make(actor)
                runtime = await self._histories.open(name)
                own = self._authorizer.reader(runtime, actor)
                await self._replays.order(request, runtime, own)
                return _answer(await self._replays.state(runtime, own))
            case "POST", ["histories", name, "blast"]:
                runtime = await self._histories.open(name)
                reader = self._authorizer.reader(runtime, actor)
                reader.check_all(WORKED_OUT_FROM)
                radius = _encoded(await self.blasts.of_proposal(request, runtime, reader))
                return with_meaning(runtime, request.parameter("at"), radius)
            case "POST", ["histories", name, "fit"]:
                inquiry = await self._inquiry(request, name, actor)
                fit = _encoded(await self.capacities.fit_of_documents(inquiry))
                return with_meaning(inquiry.runtime, inquiry.moment, fit)
            case "GET", ["histories", name, "diff"]:
                return await self._diff(request, await self._histories.open(name), actor)
            case "GET", ["histories", name, "again"]:
                return await self._again(request, await self._histories.open(name), actor)
            case "GET", ["histories", name, "rehearsal"]:
                runtime = await self._histories.open(name)
                self.check_rehearsed(actor, runtime)
                return await self.rehearsals.answer(request, runtime, actor)
            case "GET", ["histories", name, part, *rest] if len(rest) <= 1:
                read = _PARTS.get((part, len(rest)))
                if read is not None:
                    inquiry = await self._inquiry(request, name, actor, "".join(rest))
                    return await with_meanings(inquiry, part, read(self, inquiry))
        return status.page_not_found()

    async def _diff(self, request: HttpRequest, runtime: HistoryRuntime, actor: Actor) -> Response:
        check, moment = partial(self.check_compared, actor, runtime), request.parameter("at")
        form = DiffForm.TEXT if request.flag("page") else DiffForm.REPORT
        body = await self.diffs.answer(request, runtime, check, moment, actor, form)
        return with_meaning(runtime, moment, _encoded(body))

    async def _again(self, request: HttpRequest, runtime: HistoryRuntime, actor: Actor) -> Response:
        self.check_rehearsed(actor, runtime)
        moment = request.parameter("at")
        form = DiffForm.TEXT if request.flag("page") else DiffForm.REPORT
        body = await self.agains.answer(request, runtime, moment, form)
        return with_meaning(runtime, moment, _encoded(body))

    async def _inquiry(
        self, request: HttpRequest, name: str, actor: Actor, rest: str = ""
    ) -> Inquiry:
        """A request about a part of a history; opens the history. Raises NotFound."""
        runtime = await self._histories.open(name)
        return Inquiry(
            request=request,
            runtime=runtime,
            rest=rest,
            moment=request.parameter("at"),
            reader=partial(self._authorizer.reader, runtime, actor),
            actor=actor,
        )

    async def _workers(self, actor: Actor) -> Response:
        items = [
            models.RuntimeHealth(
                history=runtime.info.name,
                revision=runtime.views.revision,
                waiting_writes=runtime.waiting_writes,
                followers=runtime.watches.count(),
                problem=str(runtime.problem or ""),
            )
            for runtime in self._histories.open_runtimes()
            if await self._gate.sees_history(runtime.info.name, actor)
        ]
        return _answer(models.WorkerList(items=items))

    async def histories(self, actor: Actor) -> list[models.History]:
        """The facts about the histories that a user may see."""
        items = []
        for info in await self._histories.all():
            with suppress(NotFound):  # deleted since it was listed
                if await self._gate.sees_history(info.name, actor):
                    items.append(await self._history(info))
        return items

    async def _manage(self, request: HttpRequest, name: str, what: str, actor: Actor) -> Response:
        """Rename, copy or fork a history. The result has a new name and the existing data.

        So the user also needs the right to create histories.
        """
        if what == "rename":
            await self._gate.check_may_make(actor)
            return _answer(await self._history(await self.managing.rename(request, name)))
        if what == "copy":
            await self.managing.check_may_repeat(name, actor)
            return _answer(await self._history(await self.managing.copy(request, name)), code=201)
        wanted = await reading.body(request, models.NewFork, self._limits)
        made = await self.managing.fork(wanted, name, actor)
        report = await self.diffs.of_fork(await self._histories.open(name), made)
        return _answer(managing.forked(await self._history(made.info), made, report), code=201)

    async def check_compared(
        self, actor: Actor, own: HistoryRuntime, runtime: HistoryRuntime, moment: str
    ) -> None:
        """Raise Forbidden for a user who may not read everything in a history at a moment.

        The user needs the kinds that decisions name, all present kinds, and all kinds at the
        moment. A service account of the requested history, `own`, has no rights in another one,
        where its name may belong to somebody else.
        """
        if self._authorizer.is_unlimited(actor):
            return
        self._authorizer.check_is_known(actor, own, runtime)
        reader = self._authorizer.reader(runtime, actor)
        reader.check_all((*WORKED_OUT_FROM, *runtime.views.objects.resources()))
        if moment:
            past = await views_at(self._histories, runtime, moment)
            reader.check_all(past.objects.resources())

    def check_rehearsed(self, actor: Actor, runtime: HistoryRuntime) -> None:
        """Raise Forbidden for a user who may not read everything: any write may be named."""
        self._authorizer.check_sees_everything(actor, runtime, runtime)

    async def _history(self, info: HistoryInfo) -> models.History:
        """The facts about a history, without opening it."""
        head, broken = await self._histories.state(info)
        end = self._histories.end(info, head)
        try:
            settings = profiles.from_settings(info.settings).settings()
        except InputError as problem:
            settings, broken = {"profile": "", "gates": {}}, broken or str(problem)
        return models.History(
            name=info.name,
            revision=head.revision,
            time=timestamps.micro_text(head.time) if head.time else "",
            hash=head.hash.hex(),
            created=timestamps.micro_text(info.created),
            profile=settings["profile"],
            gates=settings["gates"],
            parent=info.parent,
            parent_revision=info.parent_revision,
            is_fork=info.is_fork,
            is_recorded=info.is_recorded,
            moments_end=timestamps.micro_text(end.instant) if end.instant else "",
            moments_end_now=end.is_now,
            opening=self._histories.opening_of(info.name),
            broken=broken,
            replaced=self._histories.why_replaced(info.name),
        )

    async def _events(self, inquiry: Inquiry) -> Stream:
        request, runtime = inquiry.request, inquiry.runtime
        begin, first = request.parameter("after"), request.parameter("from")
        if begin and first:
            raise BadRequest("after and from cannot be combined")
        if first:
            after = await moments.before(runtime.log, runtime.info, first, self._histories.now())
        elif begin and not begin.isdigit():
            after = await self._revision(runtime, begin)
        else:
            after = Revision(integer(request, "after", 0))
        until = await self._until(request, runtime)
        limit = integer(request, "limit", 2**62)
        log_lines.line_of(inquiry)
        if request.flag("follow"):
            seconds = integer(request, "timeoutSeconds", 0)
            return Stream(
                chunks=log_lines.follow(inquiry, after, limit, seconds), content_type=_LINES
            )
        return Stream(
            chunks=log_lines.read(inquiry, after, until, limit, self._limits.log_page_max),
            content_type=_LINES,
        )

    async def _decisions(self, inquiry: Inquiry) -> Response:
        request, runtime = inquiry.request, inquiry.runtime
        after = integer(request, "after", 0)
        limit = min(integer(request, "limit", 100), self._limits.log_page_max)
        wanted = {
            name: request.parameter(name)
            for name in ("controller", "resource", "namespace", "name", "outcome")
            if request.parameter(name)
        }
        until = await self._until(request, runtime)
        reader = inquiry.reader()
        reader.check_all(WORKED_OUT_FROM)
        rows, _revision = await self._views.rows(runtime, "decisions", until)
        rows = reader.rows("decisions", rows)
        decisions: list[models.Decision] = []
        for row in rows:
            if row["revision"] <= after or any(row[part] != wanted[part] for part in wanted):
                continue
            if len(decisions) == limit:
                return _answer(models.DecisionList(items=decisions, next=decisions[-1].revision))
            decisions.append(_decision(row))
        return _answer(models.DecisionList(items=decisions, next=0))

    async def _controllers(self, inquiry: Inquiry) -> Response:
        """The state of each controller, for users who may read the object that switches them."""
        inquiry.reader().check(switching.KUBE_SYSTEM)
        states = switching.states(inquiry.runtime.info, inquiry.runtime.views.objects)
        holders = await self._holders(inquiry.runtime.info.id)
        items = [
            models.Controller(name=name, state=state, run_by=holders.get(name, ""))
            for name, state in states
        ]
        return _answer(models.ControllerList(items=items))

    async def _replay(self, inquiry: Inquiry) -> Response:
        return _answer(await self._replays.state(inquiry.runtime, inquiry.reader()))

    async def _view_list(self, _: Inquiry) -> Response:
        items = [
            models.View(
                name=name,
                projection=projection,
                description=table.description,
                key=list(table.key),
                columns=[
                    models.Column(
                        name=column.name, type=column.type, description=column.description
                    )
                    for column in table.columns
                ],
            )
            for name, projection, table in self._views.tables()
        ]
        return _answer(models.ViewList(items=items))

    async def _view(self, inquiry: Inquiry) -> Response:
        request, runtime, name = inquiry.request, inquiry.runtime, inquiry.rest
        until = await self._until(request, runtime)
        rows, revision = await self._views.rows(runtime, name, until)
        rows = inquiry.reader().rows(name, rows)
        shown, left_out = views.limited(rows, integer(request, "limit", 10_000))
        return _answer(models.Rows(view=name, revision=revision, items=shown, left_out=left_out))

    async def _why(self, inquiry: Inquiry) -> Response:
        try:
            return _encoded((await self.answers.why(inquiry)).to_json())
        except NotFound as problem:
            if not self._authorizer.is_unlimited(inquiry.actor):
                raise
            bounds = self._limits.explain
            raise await other_histories.named(
                problem, inquiry, self._histories, bounds
            ) from problem

    async def _findings(self, inquiry: Inquiry) -> Response:
        """The findings with the known defects; unlike a page, they wait for the whole log.

        The wait is bounded, and the request may have a shorter one; the log is read on afterwards.
        """
        inquiry.reader().check_all(WORKED_OUT_FROM)
        views = await self.answers.views(inquiry)
        seconds = self._limits.findings_wait_seconds
        if inquiry.request.parameter("wait"):
            seconds = min(seconds, integer(inquiry.request, "wait", 0))
        ends = anyio.current_time() + seconds
        await self.answers.read_within(inquiry.runtime, views.revision, seconds)
        answer = await self.answers.findings(inquiry)
        left = ends - anyio.current_time()
        defects = await self.answers.known_defects(inquiry, self.incident, left)
        return _encoded(msgspec.to_builtins(answer) | defects.to_json())

    async def _object(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.object(inquiry))

    async def _timeline(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.timeline(inquiry))

    async def _entries(self, inquiry: Inquiry) -> Stream:
        return Stream(chunks=await self._timelines.lines(inquiry), content_type=_LINES)

    async def _head(self, inquiry: Inquiry) -> Response:
        """The head of a history at the moment, signed by this server."""
        if self._sign is None:
            raise NotFound("this server does not sign heads")
        info, moment = inquiry.runtime.info, inquiry.runtime.absolute(inquiry.moment)
        head = await heads.head_at(inquiry.runtime.log, info, moment, option="at")
        return _encoded(self._sign(info.name, head).to_json())

    async def _lanes(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.lanes(inquiry))

    async def _trace(self, inquiry: Inquiry) -> Response:
        trace = await self.answers.trace(inquiry)
        return Response(await anyio.to_thread.run_sync(msgspec.json.encode, trace))

    async def _map(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.map(inquiry))

    async def _attempts(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.attempts(inquiry))

    async def _scan(self, inquiry: Inquiry) -> Response:
        report = await self.answers.scan(inquiry)
        items = []
        for each in report.sightings:
            incident = self.incident(each.incident)
            about = {} if incident is None else incident.about()
            items.append({**each.to_json(), **about})
        return _answer(models.SightingList(items=items, attempts_left_out=report.attempts_left_out))

    async def lint(self, inquiry: Inquiry) -> LintReport:
        """The lint findings for the published objects at the moment. Raises TooLarge, NotFound."""
        views = await self.answers.views(inquiry)
        return await self._lints.report(inquiry, views.revision)

    async def _lint(self, inquiry: Inquiry) -> Response:
        until = await self._until(inquiry.request, inquiry.runtime)
        return _encoded((await self._lints.report(inquiry, until)).to_json())

    async def _pace(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.pace(inquiry))

    async def _find(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.answers.find(inquiry))

    async def _blast(self, inquiry: Inquiry) -> Response:
        request, runtime = inquiry.request, inquiry.runtime
        reader = inquiry.reader()
        reader.check_all(WORKED_OUT_FROM)
        return _encoded(await self.blasts.of_rule(request, runtime, inquiry.moment, reader))

    async def _fit(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.capacities.fit(inquiry))

    async def _capacity(self, inquiry: Inquiry) -> Response:
        return _encoded(await self.capacities.capacity(inquiry))

    async def _until(self, request: HttpRequest, runtime: HistoryRuntime) -> Revision:
        """The revision of the parameter `at`; the present one when it is absent."""
        moment = request.parameter("at")
        return await self._revision(runtime, moment) if moment else runtime.views.revision

    async def _revision(self, runtime: HistoryRuntime, moment: str) -> Revision:
        """The last revision up to a moment. Raises NotFound for a moment beyond the end."""
        try:
            return await self._histories.revision(runtime.info, moment)
        except RevisionTooLarge as problem:
            raise NotFound(str(problem), resource="revisions") from problem


_Read = Callable[[RedraApi, Inquiry], Awaitable[Response | Stream]]

_PARTS: dict[tuple[str, int], _Read] = {
    ("events", 0): RedraApi._events,
    ("decisions", 0): RedraApi._decisions,
    ("controllers", 0): RedraApi._controllers,
    ("replay", 0): RedraApi._replay,
    ("views", 0): RedraApi._view_list,
    ("views", 1): RedraApi._view,
    ("why", 0): RedraApi._why,
    ("findings", 0): RedraApi._findings,
    ("find", 0): RedraApi._find,
    ("attempts", 0): RedraApi._attempts,
    ("scan", 0): RedraApi._scan,
    ("lint", 0): RedraApi._lint,
    ("pace", 0): RedraApi._pace,
    ("object", 0): RedraApi._object,
    ("lanes", 0): RedraApi._lanes,
    ("map", 0): RedraApi._map,
    ("timeline", 0): RedraApi._timeline,
    ("entries", 0): RedraApi._entries,
    ("head", 0): RedraApi._head,
    ("trace", 0): RedraApi._trace,
    ("blast", 0): RedraApi._blast,
    ("fit", 0): RedraApi._fit,
    ("capacity", 0): RedraApi._capacity,
}


def _encoded(answer: object) -> Response:
    return Response(msgspec.json.encode(answer))


def _decision(row: dict[str, object]) -> models.Decision:
    time = row["time"]
    text = timestamps.micro_text(timestamps.Instant(time)) if isinstance(time, int) else ""
    named = {name: row[name] for name in models.Decision.model_fields if name != "time"}
    return models.Decision.model_validate(named | {"time": text})


def _answer(model: BaseModel, *, code: int = 200) -> Response:
    return Response(model.model_dump_json().encode(), status=code)
