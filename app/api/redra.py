"""`/redra/v1`: histories, the log, views, decisions, health."""

import math
from collections.abc import AsyncGenerator, Awaitable, Callable

import anyio
import anyio.lowlevel
import msgspec
from pydantic import BaseModel, ValidationError

from app.api import redra_models as models
from app.api import redra_openapi, redra_views, status
from app.api.limits import ApiLimits
from app.api.messages import Answer, Request, Stream
from app.api.redra_blast import BlastApi
from app.api.timelines import views_at
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import BadRequest, InputError, NotFound, RevisionTooLarge
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.log.chain import stamp_json
from app.domain.objects import profile as profiles
from app.domain.values import timestamps
from app.service.explaining import Explainer, Question
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime

_LINES = b"application/x-ndjson"
_KEPT_VIEWS_MAX = 64
_FOLLOW_SECONDS = 60.0
"""How long a follower waits for events at once."""


class RedraApi:
    """Answers requests below `/redra/v1`."""

    def __init__(self, histories: Histories, limits: ApiLimits) -> None:
        self._histories = histories
        self._limits = limits
        self._blasts = BlastApi(histories, limits)
        self._explanations = anyio.CapacityLimiter(limits.explanations_at_once_max)
        self._compiler = CelCompiler()
        self._views = redra_views.ViewTables(kept_max=_KEPT_VIEWS_MAX)

    async def answer(self, request: Request) -> Answer | Stream:
        """The response; 404 for paths that are not served. Raises Rejected."""
        _check_query(request)
        parts = [part for part in request.path.split("/") if part][1:]
        if parts[:1] != ["v1"]:
            return status.page_not_found()
        match request.method, parts[1:]:
            case "GET", []:
                return _answer(models.Index(paths=redra_openapi.paths()))
            case "GET", ["openapi.json"]:
                return Answer(redra_openapi.document())
            case "GET", ["workers"]:
                return self._workers()
            case "GET", ["histories"]:
                return await self._list()
            case "POST", ["histories"]:
                return await self._create(request)
            case "GET", ["histories", name]:
                return _answer(await self._history(await self._histories.info(name)))
            case "POST", ["histories", name, "blast"]:
                return await self._blasts.of_proposal(request, await self._histories.open(name))
            case "GET", ["histories", name, part, *rest] if len(rest) <= 1:
                read = _PARTS.get((part, len(rest)))
                if read is not None:
                    runtime = await self._histories.open(name)
                    return await read(self, request, runtime, "".join(rest))
        return status.page_not_found()

    def _workers(self) -> Answer:
        items = [
            models.RuntimeHealth(
                history=runtime.info.name,
                revision=runtime.views.revision,
                waiting_writes=runtime.waiting_writes,
                followers=runtime.watches.count(),
                problem=str(runtime.problem or ""),
            )
            for runtime in self._histories.open_runtimes()
        ]
        return _answer(models.WorkerList(items=items))

    async def _list(self) -> Answer:
        items = [await self._history(info) for info in await self._histories.all()]
        return _answer(models.HistoryList(items=items))

    async def _create(self, request: Request) -> Answer:
        limits = self._limits
        text = await request.body(
            bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max
        )
        try:
            wanted = models.NewHistory.model_validate_json(text)
        except ValidationError as problem:
            raise BadRequest(models.problem_text(problem)) from problem
        profile = profiles.Profile(
            version=wanted.profile or profiles.DEFAULT_VERSION, gates=wanted.gates
        )
        runtime = await self._histories.create_cluster(
            wanted.name, seed=wanted.seed, settings=profile.settings()
        )
        return _answer(await self._history(runtime.info), code=201)

    async def _history(self, info: HistoryInfo) -> models.History:
        """What is known of a history without opening it."""
        head = await self._histories.head(info)
        broken = await self._histories.why_broken(info, head)
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
            broken=broken,
        )

    async def _events(self, request: Request, runtime: HistoryRuntime, _: str) -> Stream:
        after = _integer(request, "after", 0)
        until = await self._until(request, runtime)
        limit = _integer(request, "limit", 2**62)
        if request.flag("follow"):
            seconds = _integer(request, "timeoutSeconds", 0)
            return Stream(
                chunks=_follow(runtime, Revision(after), limit, seconds), content_type=_LINES
            )
        return Stream(
            chunks=_read(runtime, Revision(after), until, limit, self._limits.log_page_max),
            content_type=_LINES,
        )

    async def _decisions(self, request: Request, runtime: HistoryRuntime, _: str) -> Answer:
        after = _integer(request, "after", 0)
        limit = min(_integer(request, "limit", 100), self._limits.log_page_max)
        wanted = {
            name: request.parameter(name)
            for name in ("controller", "resource", "namespace", "name", "outcome")
            if request.parameter(name)
        }
        until = await self._until(request, runtime)
        rows, _revision = await self._views.rows(runtime, "decisions", until)
        found: list[models.Decision] = []
        for row in rows:
            if row["revision"] <= after or any(row[part] != wanted[part] for part in wanted):
                continue
            if len(found) == limit:
                return _answer(models.DecisionList(items=found, next=found[-1].revision))
            found.append(_decision(row))
        return _answer(models.DecisionList(items=found, next=0))

    async def _view_list(self, request: Request, runtime: HistoryRuntime, _: str) -> Answer:
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

    async def _view(self, request: Request, runtime: HistoryRuntime, name: str) -> Answer:
        until = await self._until(request, runtime)
        rows, revision = await self._views.rows(runtime, name, until)
        shown, left_out = redra_views.limited(rows, _integer(request, "limit", 10_000))
        return _answer(models.Rows(view=name, revision=revision, items=shown, left_out=left_out))

    async def _why(self, request: Request, runtime: HistoryRuntime, _: str) -> Answer:
        """Why an object is as it is: the decision about it and the reasons made again in full."""
        question = Question(
            kind=_required(request, "kind"),
            namespace=request.parameter("namespace") or "default",
            name=_required(request, "name"),
            node=request.parameter("node"),
            help=request.flag("help"),
        )
        async with self._explanations:
            explainer = Explainer(
                runtime.log,
                runtime.info,
                await views_at(self._histories, runtime, request.parameter("at")),
                self._compiler,
                runtime.rules.profile,
                views_at=lambda revision: self._histories.at(runtime.info.name, revision),
                bounds=self._limits.explain,
                blast_bounds=self._limits.blast,
            )
            found = await explainer.why(question)
        return Answer(msgspec.json.encode(found.to_json()))

    async def _blast(self, request: Request, runtime: HistoryRuntime, _: str) -> Answer:
        return await self._blasts.of_rule(request, runtime)

    async def _until(self, request: Request, runtime: HistoryRuntime) -> Revision:
        """The revision that `at` means; the present when it is absent."""
        moment = request.parameter("at")
        if not moment:
            return runtime.views.revision
        try:
            return await self._histories.revision(runtime.info, moment)
        except RevisionTooLarge as problem:
            raise NotFound(str(problem)) from problem


_Read = Callable[[RedraApi, Request, HistoryRuntime, str], Awaitable[Answer | Stream]]

_PARTS: dict[tuple[str, int], _Read] = {
    ("events", 0): RedraApi._events,
    ("decisions", 0): RedraApi._decisions,
    ("views", 0): RedraApi._view_list,
    ("views", 1): RedraApi._view,
    ("why", 0): RedraApi._why,
    ("blast", 0): RedraApi._blast,
}


def event_line(event: Event) -> bytes:
    """One event as a JSON line: the stamp and the whole object."""
    key = event.key
    head = msgspec.json.encode(
        {
            "revision": event.revision,
            "type": event.type.value,
            "group": key.group,
            "resource": key.resource,
            "namespace": key.namespace,
            "name": key.name,
            "uid": event.uid,
            "hash": event.hash.hex(),
        }
    )
    return b'%s,"stamp":%s,"object":%s}\n' % (head[:-1], stamp_json(event.stamp), event.body)


async def _read(
    runtime: HistoryRuntime, after: Revision, until: Revision, limit: int, page: int
) -> AsyncGenerator[bytes, None]:
    while limit > 0 and after < until:
        events = await runtime.log.read(
            runtime.info.id, after=after, until=until, limit=min(page, limit)
        )
        if not events:
            return
        yield b"".join([event_line(event) for event in events])
        limit -= len(events)
        after = events[-1].revision
        await anyio.lowlevel.checkpoint()


async def _follow(
    runtime: HistoryRuntime, after: Revision, limit: int, seconds: int
) -> AsyncGenerator[bytes, None]:
    """Events as they come: at most `limit`, and for `seconds` unless that is 0."""
    end = anyio.current_time() + seconds if seconds else math.inf
    with runtime.subscribe(after=after) as subscription:
        while limit > 0:
            left = end - anyio.current_time()
            if left <= 0:
                return
            waiting = min(left, _FOLLOW_SECONDS)
            events = await subscription.catch_up() or await subscription.next_batch(waiting)
            if events:
                yield b"".join([event_line(event) for event in events[:limit]])
                limit -= len(events)


def _check_query(request: Request) -> None:
    """Raise BadRequest for a parameter that holds the character 0: no name has it."""
    for name, values in request.query.items():
        if any("\0" in value for value in values):
            raise BadRequest(f"the parameter {name[:64]!r} holds the character 0")


def _decision(row: dict[str, object]) -> models.Decision:
    time = row["time"]
    text = timestamps.micro_text(timestamps.Instant(time)) if isinstance(time, int) else ""
    named = {name: row[name] for name in models.Decision.model_fields if name != "time"}
    return models.Decision.model_validate(named | {"time": text})


def _answer(model: BaseModel, *, code: int = 200) -> Answer:
    return Answer(model.model_dump_json().encode(), status=code)


def _required(request: Request, name: str) -> str:
    value = request.parameter(name)
    if not value:
        raise BadRequest(f"the parameter {name} is missing")
    return value


def _integer(request: Request, name: str, default: int) -> int:
    text = request.parameter(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequest(f'{name} must be a number, not "{text[:64]}"')
    return int(text)
