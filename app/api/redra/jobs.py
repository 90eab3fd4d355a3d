"""Jobs: `…/minimise`, `…/rehearse`, `…/export`, `/redra/v1/sweep` and `…/incidents/run` start them.

A job is seen by the user who has started it, and by users who may do everything. A job that reads
histories is seen only while these exist with the same log and the user may read all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio.to_thread
import msgspec
from pydantic import BaseModel

from app.analysis.minimise import predicates
from app.analysis.sweep import plans
from app.analysis.sweep.plans import SweepPlan
from app.api.access.authorization import Authorizer
from app.api.kubernetes import status
from app.api.redra import experiment_models as models
from app.api.redra.gallery import GalleryApi
from app.api.redra.server_parts import Beside, ListedPages
from app.api.server import reading
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response
from app.domain.controllers import registry
from app.domain.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    RevisionTooLarge,
    TooLarge,
    UnsupportedMediaType,
)
from app.domain.log import Actor, HistoryId, HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.values.json_tree import JsonObject
from app.service import moments
from app.service.answering.jobs import Job, JobKind, Jobs, JobSource, JobState, JobWish
from app.service.histories import DEFAULT_HISTORY, Histories
from app.service.recorded_doubts import doubts_of
from app.service.runtime import HistoryRuntime

_Body = TypeVar("_Body", bound=BaseModel)

_BINARY = b"application/octet-stream"
_TYPES = {
    ".zip": b"application/zip",
    ".csv": b"text/csv; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".json": b"application/json",
    ".jsonl": b"application/x-ndjson",
    ".py": b"text/x-python; charset=utf-8",
}
_FILES: Mapping[models.ExportForm, str] = {
    "bundle": "history.zip",
    "pytest": "test_history.py",
    "manifests": "manifests",
    "go-allocator-case": "case.json",
    "audit": "audit.jsonl",
    "watch": "watch",
    "objects": "objects.yaml",
    "k8shark": "capture.zip",
}
"""The names of exported files that a user does not name, by their form."""
_OF_REHEARSALS = ("to", "gates", "quirks", "at")
"""The parameters of a job that determine what is rehearsed."""
_MARGIN = 0.9
"""The part of a job's time after which a search ends with the smallest history so far."""


class JobsApi:
    """Starts jobs for users, and answers what has become of them.

    `pages` are listed among the jobs of their history; None where no pages are served.
    """

    def __init__(
        self, histories: Histories, limits: ApiLimits, authorizer: Authorizer, beside: Beside
    ) -> None:
        self._histories = histories
        self._limits = limits
        self._authorizer = authorizer
        self._gallery = GalleryApi(beside.gallery)
        self._fleets = beside.fleets
        self._jobs = Jobs(beside.worker, limits.jobs)
        self.pages: ListedPages | None = None

    async def answer(self, request: HttpRequest, parts: Sequence[str], actor: Actor) -> Response:
        """The answer for an admitted user. Raises Rejected, InputError."""
        match request.method, parts:
            case "GET", ["incidents"]:
                return _answer(self._gallery.list())
            case "GET", ["incidents", name]:
                return _answer(self._gallery.show(name))
            case "POST", ["incidents", "run"]:
                return await self._run_incidents(request, await self.own(), actor)
            case "POST", ["sweep"]:
                return await self._sweep(request, await self.own(), actor)
            case "POST", ["histories", name, "minimise"]:
                return await self._minimise(request, await self._histories.open(name), actor)
            case "POST", ["histories", name, "rehearse"]:
                return await self._rehearse(request, await self._histories.open(name), actor)
            case "POST", ["histories", name, "export"]:
                return await self._export(request, await self._histories.open(name), actor)
            case _, ["jobs", *rest]:
                return await self._about_jobs(request, await self.own(), None, actor, rest)
            case _, ["histories", name, "jobs", *rest]:
                runtime = await self._histories.open(name)
                return await self._about_jobs(request, runtime, runtime.info, actor, rest)
        return status.page_not_found()

    async def forget(self, history: HistoryId) -> None:
        """Remove the jobs that read a history, because it is deleted."""
        await self._jobs.forget(history)

    async def own(self) -> HistoryRuntime:
        """The history whose rules apply to paths that name none, and whose errands jobs are."""
        return await self._histories.open(DEFAULT_HISTORY)

    async def _minimise(
        self, request: HttpRequest, runtime: HistoryRuntime, actor: Actor
    ) -> Response:
        """Start the search for the smallest history. Raises Rejected, InputError."""
        self._authorizer.check_sees_everything(actor, runtime, runtime)
        wish = await self._body(request, models.MinimiseWish)
        if isinstance(predicates.parse(wish.keep, "keep"), predicates.CommandPredicate):
            raise BadRequest(
                "keep: a server runs no commands; use `redra minimise` where the data is"
            )
        _check_switches(wish.profile, wish.gates, wish.quirks)
        source = await self._source(runtime.info, wish.at, runtime.info.name)
        self._check_size([source], "redra minimise")
        longest = self._limits.jobs.seconds_max * _MARGIN
        parameters = {
            "keep": wish.keep,
            "profile": wish.profile,
            "gates": _words(wish.gates),
            "quirks": _words(wish.quirks),
            "seconds": min(wish.seconds or longest, longest),
            "name": wish.name,
            "asOf": source.as_of,
        }
        started = JobWish(kind=JobKind.MINIMISE, parameters=parameters, sources=[source])
        return self._begun(runtime, started, actor, runtime.info)

    async def _rehearse(
        self, request: HttpRequest, runtime: HistoryRuntime, actor: Actor
    ) -> Response:
        """Start the rehearsal of an upgrade. Raises Rejected, InputError."""
        self._authorizer.check_sees_everything(actor, runtime, runtime)
        wish = await self._body(request, models.RehearsalWish)
        started = await self.rehearsal(runtime, wish)
        return self._begun(runtime, started, actor, runtime.info)

    async def rehearsal(self, runtime: HistoryRuntime, wish: models.RehearsalWish) -> JobWish:
        """The work of a rehearsal. Raises Rejected, InputError."""
        _check_switches(wish.to, wish.gates, wish.quirks)
        place = await self._source(runtime.info, wish.at, "")
        # Events after the moment may show which gates were on before it.
        source = await self._source(runtime.info, "", runtime.info.name)
        self._check_size([source], "redra rehearse")
        parameters = {
            "to": wish.to,
            "gates": _words(wish.gates),
            "quirks": _words(wish.quirks),
            "at": str(place.until),
            "asOf": place.as_of,
            # A fork's doubts come from its parent, which does not travel.
            "doubts": msgspec.to_builtins(await doubts_of(runtime.log, runtime.info)),
        }
        return JobWish(kind=JobKind.REHEARSE, parameters=parameters, sources=[source])

    async def again(
        self,
        runtime: HistoryRuntime,
        moment: str,
        profile: str,
        switches: Mapping[str, dict[str, bool]],
        parameters: JsonObject,
    ) -> JobWish:
        """The work of deciding a history again up to a moment. Raises Rejected, InputError."""
        _check_switches(profile, **switches)
        place = await self._source(runtime.info, moment, "")
        # Events after the moment may show which gates were on before it.
        source = await self._source(runtime.info, "", runtime.info.name)
        self._check_size([source], "redra diff --again")
        doubts = msgspec.to_builtins(await doubts_of(runtime.log, runtime.info))
        words = {name: _words(states) for name, states in switches.items()}
        rules = {"profile": profile, **words}
        wanted = {**parameters, **rules, "at": str(place.until), "doubts": doubts}
        return JobWish(kind=JobKind.AGAIN, parameters=wanted, sources=[source])

    async def rehearsed(
        self, runtime: HistoryRuntime, wish: models.RehearsalWish, actor: Actor, seconds: float
    ) -> Job:
        """The job of a rehearsal, after its end or this time.

        One of the user that answers the same question is used again. Raises Rejected, InputError.
        """
        wanted = await self.rehearsal(runtime, wish)
        job = next(
            (
                each
                for each in self._jobs.of(runtime.info.id)
                if each.owner == actor.user and _answers(each, wanted)
            ),
            None,
        )
        if job is None:
            job = self._start(runtime, wanted, actor, runtime.info)
        await job.wait_ended(min(seconds, self._limits.jobs.wait_seconds_max))
        return job

    async def _export(
        self, request: HttpRequest, runtime: HistoryRuntime, actor: Actor
    ) -> Response:
        """Start an export. Raises Rejected, InputError.

        It holds no keys of Secrets, so the right to read everything is enough.
        """
        self._authorizer.check_sees_everything(actor, runtime, runtime)
        wish = await self._body(request, models.ExportWish)
        for predicate in wish.never:
            if isinstance(predicates.parse(predicate, "never"), predicates.CommandPredicate):
                raise BadRequest("never: a server runs no commands")
        source = await self._source(runtime.info, wish.at, runtime.info.name)
        self._check_size([source], "redra export")
        name = wish.name or _FILES[wish.form]
        parameters = {
            **wish.model_dump(mode="json"),
            "name": name,
            "events": source.until,
            "asOf": source.as_of,
        }
        sources = [replace(source, file=name)]
        started = JobWish(kind=JobKind.EXPORT, parameters=parameters, sources=sources)
        return self._begun(runtime, started, actor, runtime.info)

    async def _sweep(self, request: HttpRequest, own: HistoryRuntime, actor: Actor) -> Response:
        """Start the runs of a plan. Raises Rejected, InputError."""
        wish = await self._body(request, models.SweepWish)
        return under_way(await self.sweep(own, wish, actor), None)

    async def sweep(self, own: HistoryRuntime, wish: models.SweepWish, actor: Actor) -> Job:
        """A new job that runs a plan; `own` is that of `own()`. Raises Rejected, InputError."""
        plan = plans.parse(wish.plan, "plan")
        self._check_fleets(plan, wish.manifests)
        count = sum(1 for _ in plans.cells(plan))
        if count > self._limits.jobs.cells_max:
            raise TooLarge(
                f"plan: {count} runs are more than {self._limits.jobs.cells_max}: use redra sweep"
            )
        sources = [await self._named(name, own, actor) for name in plan.histories]
        self._check_size(sources, "redra sweep")
        parameters = {
            "plan": wish.plan,
            "place": "plan",
            "manifests": wish.manifests,
            "title": f"Sweep {wish.name}".strip(),
        }
        started = JobWish(kind=JobKind.SWEEP, parameters=parameters, sources=sources)
        return self._start(own, started, actor, None)

    async def _run_incidents(
        self, request: HttpRequest, own: HistoryRuntime, actor: Actor
    ) -> Response:
        """Start the runs of incidents. Raises Rejected, InputError for an unknown one."""
        wish = await self._body(request, models.IncidentsWish)
        for name in wish.names:
            self._gallery.gallery.read(name)
        started = JobWish(kind=JobKind.INCIDENTS, parameters={"names": wish.names})
        return self._begun(own, started, actor, None)

    async def _about_jobs(
        self,
        request: HttpRequest,
        own: HistoryRuntime,
        place: HistoryInfo | None,
        actor: Actor,
        rest: Sequence[str],
    ) -> Response:
        """The answer about jobs below a history, or beside all of them (None).

        Raises NotFound, Forbidden, Conflict.
        """
        pages = None if place is None else self.pages
        reader = actor, self._authorizer.grants(own, actor)
        match request.method, rest:
            case "GET", []:
                seen = await self.seen(own, place, actor)
                items = [
                    models.job_status(job, place).model_copy(update={"result": None})
                    for job in seen
                ]
                listed = [] if pages is None else pages.listed(own, reader)
                items += [each.model_copy(update={"result": None}) for each in listed]
                return _answer(models.JobList(items=items))
            case "GET", [name]:
                seconds = self.wait_seconds(request, 0.0)
                if pages and (page := await pages.waited(own, reader, name, seconds)):
                    return _answer(page)
                job = await self.find(name, own, place, actor)
                await job.wait_ended(seconds)
                return await _encoded(models.job_status(job, place))
            case "DELETE", [name]:
                if pages and (page := await pages.cancelled(own, reader, name)):
                    return _answer(page)
                job = await self.find(name, own, place, actor)
                await self.remove(job)
                return _answer(models.job_status(job, place))
            case "GET", [name, "files", file]:
                return _file(await self.find(name, own, place, actor), file)
        return status.page_not_found()

    async def seen(self, own: HistoryRuntime, place: HistoryInfo | None, actor: Actor) -> list[Job]:
        """The jobs of a history, or of none, that the user may see."""
        return [each for each in self._of(place) if await self._sees(each, own, actor)]

    def _of(self, place: HistoryInfo | None) -> list[Job]:
        return self._jobs.of(None if place is None else place.id)

    async def find(
        self, name: str, own: HistoryRuntime, place: HistoryInfo | None, actor: Actor
    ) -> Job:
        """A job that the user may see. Raises NotFound, Forbidden."""
        for job in self._of(place):
            if job.id == name and self._is_of(job, actor):
                await self._check_sources(job, own, actor)
                return job
        raise NotFound(f'there is no job "{name[:64]}"', resource="jobs", name=name[:64])

    async def remove(self, job: Job) -> None:
        """Cancel a job unless it has ended, and forget its result."""
        await self._jobs.remove(job)

    def _is_of(self, job: Job, actor: Actor) -> bool:
        return self._authorizer.is_unlimited(actor) or job.owner == actor.user

    async def _sees(self, job: Job, own: HistoryRuntime, actor: Actor) -> bool:
        if not self._is_of(job, actor):
            return False
        try:
            await self._check_sources(job, own, actor)
        except (NotFound, Forbidden):
            return False
        return True

    async def _check_sources(self, job: Job, own: HistoryRuntime, actor: Actor) -> None:
        """Raise unless the histories of a job have the log it read and the user may read them."""
        every = {info.id: info for info in await self._histories.all()}
        for source in job.wish.sources:
            info = every.get(source.info.id)
            if info is None or info.begun != source.info.begun:
                raise _gone(job, "is deleted")
            runtime = await self._histories.open(info.name)
            self._authorizer.check_sees_everything(actor, own, runtime)
            if await moments.hash_at(runtime.log, info, source.until) != source.end:
                raise _gone(job, "has another log since")

    async def _named(self, name: str, own: HistoryRuntime, actor: Actor) -> JobSource:
        """A history of a plan, checked like one that is compared with that of the request."""
        history, _, moment = name.partition("@")
        if "/" in history:
            raise BadRequest(
                f"plan: a plan for a server names histories and no files, not {history[:64]!r}"
            )
        runtime = await self._histories.open(history)
        self._authorizer.check_sees_everything(actor, own, runtime)
        try:
            return await self._source(runtime.info, moment, name)
        except NotFound as problem:
            raise NotFound(f"{name}: {problem}", resource="revisions") from problem

    async def _source(self, info: HistoryInfo, moment: str, name: str) -> JobSource:
        as_of: Mapping[str, str] = {}
        try:
            until = (await self._histories.head(info)).revision
            if moment:
                runtime = await self._histories.open(info.name)
                resolved = moments.resolved([moment], runtime.end)
                (moment,), as_of = resolved.moments, resolved.as_of
                await moments.check_inside(runtime.log, info, moment)
                until = await self._histories.revision(info, moment)
        except RevisionTooLarge as problem:
            raise NotFound(str(problem), resource="revisions") from problem
        end = await moments.hash_at((await self._histories.open(info.name)).log, info, until)
        return JobSource(name=name, info=info, until=until, end=end, as_of=as_of)

    def _check_size(self, sources: Sequence[JobSource], command: str) -> None:
        events = sum(source.until for source in sources)
        if events > self._limits.jobs.events_max:
            raise TooLarge(
                f"{events} events are more than {self._limits.jobs.events_max}: use {command}"
            )

    def _check_fleets(self, plan: SweepPlan, manifests: dict[str, list[dict[str, object]]]) -> None:
        """Raise BadRequest for a fleet that names files of this machine."""
        for fleet in plan.fleets:
            if fleet.profile not in self._fleets:
                raise BadRequest(
                    f"plan: there is no profile {fleet.profile[:64]!r}; choose from "
                    f"{', '.join(self._fleets)}"
                )
            missing = next((name for name in fleet.apply if name not in manifests), None)
            if missing is not None:
                raise BadRequest(
                    f"plan: a server reads no files: give the objects of {missing[:64]!r} in "
                    "manifests"
                )

    def _begun(
        self, runtime: HistoryRuntime, wish: JobWish, actor: Actor, place: HistoryInfo | None
    ) -> Response:
        return under_way(self._start(runtime, wish, actor, place), place)

    def _start(
        self, runtime: HistoryRuntime, wish: JobWish, actor: Actor, place: HistoryInfo | None
    ) -> Job:
        number = None if place is None else place.id
        return self._jobs.begin(runtime.log, runtime.errands, wish, owner=actor.user, place=number)

    def wait_seconds(self, request: HttpRequest, default: float) -> float:
        """The time for which a request waits for a job. Raises BadRequest."""
        text = request.parameter("wait")
        try:
            seconds = float(text) if text else default
        except ValueError:
            seconds = -1.0
        if not seconds >= 0:
            raise BadRequest(f'wait must be a number of seconds, not "{text[:64]}"')
        return min(seconds, self._limits.jobs.wait_seconds_max)

    async def _body(self, request: HttpRequest, model: type[_Body]) -> _Body:
        kind = request.header(b"content-type").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise UnsupportedMediaType(
                f'the body must be application/json, not "{kind[:64]}"'
                if kind
                else "the body must be application/json, and has no content-type"
            )
        return await reading.body(request, model, self._limits)


def _gone(job: Job, fate: str) -> NotFound:
    return NotFound(f'a history of job "{job.id}" {fate}', resource="jobs", name=job.id)


def _check_switches(profile: str, gates: dict[str, bool], quirks: dict[str, bool]) -> None:
    """Raise InputError for a release, gate or quirk that does not exist."""
    settings = {"profile": profile} if profile else {}
    profiles.from_settings({**settings, "gates": gates, "quirks": quirks})
    registry.options_from({**settings, "gates": gates, "quirks": quirks})


def _words(switches: dict[str, bool]) -> list[str]:
    """Switches as for options of the command line."""
    return [f"{name}={str(is_on).lower()}" for name, is_on in switches.items()]


def under_way(job: Job, place: HistoryInfo | None) -> Response:
    """The answer that leads to a job, which belongs to a history or to none."""
    shown = models.job_status(job, place).model_copy(update={"result": None})
    location = (b"location", shown.path.encode())
    return Response(shown.model_dump_json().encode(), status=202, headers=(location,))


def _answers(job: Job, wanted: JobWish) -> bool:
    """Whether a rehearsal that runs, or has ended well, answers what is wanted.

    The settings of a history may follow from later events, so a result is that of its end alone.
    """
    if job.wish.kind is not wanted.kind or job.state in (JobState.FAILED, JobState.CANCELLED):
        return False
    if job.state is JobState.DONE and job.wish.sources != wanted.sources:
        return False
    return all(job.wish.parameters[name] == wanted.parameters[name] for name in _OF_REHEARSALS)


def _file(job: Job, name: str) -> Response:
    """A file of a result. Raises NotFound, Conflict for a job that is not done."""
    if job.state is not JobState.DONE or job.outcome is None:
        raise Conflict(f'job "{job.id}" is {job.state.value}', resource="jobs", name=job.id)
    content = job.outcome.files.get(name)
    if content is None:
        raise NotFound(f'job "{job.id}" has no file "{name[:64]}"', resource="files", name=name)
    kind = _TYPES.get(name[name.rfind(".") :], _BINARY)
    disposition = f'attachment; filename="{name}"'.encode()
    return Response(content, content_type=kind, headers=((b"content-disposition", disposition),))


def _answer(model: BaseModel) -> Response:
    return Response(model.model_dump_json().encode())


async def _encoded(model: BaseModel) -> Response:
    """The answer with a result that may be large."""
    return Response((await anyio.to_thread.run_sync(model.model_dump_json)).encode())
