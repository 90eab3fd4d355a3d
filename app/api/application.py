"""The ASGI application: one function from request to response, with errors translated once.

Order in which paths are matched: health and metrics, pages (`/ui/`), `/redra/v1`, then an optional
`/h/<history>[@moment]`, then the paths of a Kubernetes server below it.
"""

import logging
from collections.abc import Callable
from time import perf_counter

import msgspec

from app.api.access import authorization, reviews
from app.api.access.authorization import Authorization, Authorizer, Gate
from app.api.access.reviews import ReviewParts
from app.api.identity.authentication import Authenticator, Credentials, Identity
from app.api.identity.service_tokens import ServiceTokens
from app.api.kubernetes import discovery, paths, status
from app.api.kubernetes.discovery import version_document
from app.api.kubernetes.lists import ListBounds, Lists
from app.api.kubernetes.objects import Objects
from app.api.kubernetes.paths import RequestedTimeline
from app.api.kubernetes.representations import Representations, encode
from app.api.kubernetes.timelines import Timeline, open_timeline
from app.api.kubernetes.watching import WatchBounds, Watching
from app.api.openapi.documents import Openapi
from app.api.redra.routes import RedraApi
from app.api.redra.server_parts import Beside
from app.api.server.health import Health
from app.api.server.limits import ApiLimits
from app.api.server.messages import (
    TEXT,
    ClientGone,
    HttpRequest,
    Receive,
    Response,
    Scope,
    Send,
    Stream,
    send_answer,
    send_stream,
    warning,
)
from app.api.server.metrics import RequestMeter
from app.api.ui import responses
from app.api.ui.routes import Pages
from app.domain.errors import HistoryOpening, NotFound, RedraError
from app.domain.objects import rejections
from app.domain.objects.custom import definitions
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.objects.schema.structural import Schemas
from app.ports import Meter
from app.service.histories import Histories
from app.web.links import STATIC

_log = logging.getLogger("redra")

_NOT_AVAILABLE = 503

_PATH_SHOWN_MAX = 64
"""The characters of a path without a page that the answer repeats."""

SchemasOf = Callable[[str], Schemas]
"""Returns the schemas of a release such as `1.37`."""


class Application:
    """The application that answers HTTP requests. Use `create_app`."""

    def __init__(
        self,
        histories: Histories,
        *,
        schemas: SchemasOf,
        meter: Meter,
        render_metrics: Callable[[], str] | None,
        limits: ApiLimits,
        credentials: Credentials,
        authorization: Authorization,
        beside: Beside,
    ) -> None:
        self._histories = histories
        self._schemas = schemas
        self._meter = RequestMeter(meter, histories, render_metrics)
        self._limits = limits
        authenticator = Authenticator(credentials)
        self._authorizer = Authorizer(authorization)
        tokens = ServiceTokens(key=credentials.token_key)
        self._gate = Gate(histories, authenticator, self._authorizer, tokens)
        self._reviewing = ReviewParts(
            authenticator=authenticator, authorizer=self._authorizer, tokens=tokens, limits=limits
        )
        representations = Representations()
        self._watching = Watching(representations, _watch_bounds(limits))
        self._objects = Objects(
            lists=Lists(representations, _list_bounds(limits)),
            watching=self._watching,
            representations=representations,
            tokens=tokens,
            limits=limits,
        )
        is_for_all = authorization.is_open and credentials.anonymous is not None
        self._health = Health(histories, paths.DEFAULT_HISTORY, withholds=not is_for_all)
        self._redra = RedraApi(histories, limits, self._gate, self._authorizer, beside)
        self._pages = Pages(histories, self._redra, self._authorizer, limits)
        self._openapi: dict[bytes, Openapi] = {}

    def end_watches(self) -> None:
        """End all watches without an error, because the server stops; clients reconnect."""
        self._watching.end()
        self._pages.end_streams()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the ASGI server."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            await _refuse_websocket(receive, send)
            return
        request = HttpRequest(scope, receive)
        started = perf_counter()
        try:
            answer = await self._answer(request)
        except RedraError as problem:
            answer = _refused(request, status.answer(problem), problem)
        except ClientGone:
            return
        except Exception as problem:
            # The one place that catches our own mistakes: the client gets an error without the
            # trace, the log has the trace.
            answer = _refused(request, status.unexpected(problem), problem)
        if isinstance(answer, Stream):
            self._meter.watch_started(request)
            try:
                await send_stream(answer, request, send, seconds_max=self._limits.send_seconds_max)
            finally:
                self._meter.watch_ended(request)
            return
        self._meter.answered(request, answer.status, perf_counter() - started)
        await send_answer(answer, request, send, compress_from=self._limits.compress_from_bytes)

    async def _answer(self, request: HttpRequest) -> Response | Stream:
        path = request.path
        paths.check(path)
        if path in _HEALTH or path.startswith(("/livez/", "/readyz/")):
            return await self._health.answer(path)
        if path.startswith(STATIC):
            return responses.static(path) or status.page_not_found()
        requested = paths.split_history(path)
        if requested is None:
            if paths.is_page(path):
                raise NotFound(f'there is no page "{path[:_PATH_SHOWN_MAX]}"')
            return status.page_not_found()
        try:
            identity = await self._gate.admit(request, requested)
        except HistoryOpening as opening:
            is_own = opening.name == requested.history and request.method in ("GET", "HEAD")
            if not is_own or not paths.is_page(path):
                raise
            return await self._pages.opening(request, requested)
        if path == "/metrics":
            return self._meter.page()
        if path.startswith("/redra/"):
            return await self._redra.answer(request, identity.actor)
        if paths.is_page(path):
            return await self._pages.answer(request, requested, identity.actor)
        return await self._kubernetes(request, requested, identity)

    async def _kubernetes(
        self, request: HttpRequest, requested: RequestedTimeline, identity: Identity
    ) -> Response | Stream:
        """The answer of the cluster; it says so while it comes from memory alone.

        An answer that clients keep does not: they would show the warning for as long as they do.
        """
        timeline = await open_timeline(self._histories, requested)
        answer = await self._of_cluster(request, requested, identity, timeline)
        problem = timeline.runtime.problem
        is_kept = any(name == b"etag" for name, _ in answer.headers)
        if problem is None or timeline.past is not None or is_kept:
            return answer
        stale = warning(
            f"the log of history {timeline.runtime.info.name} cannot be read ({problem}): this is "
            f"the state at revision {timeline.revision}, which may be gone or outdated"
        )
        return msgspec.structs.replace(answer, headers=(*answer.headers, stale))

    async def _of_cluster(
        self,
        request: HttpRequest,
        requested: RequestedTimeline,
        identity: Identity,
        timeline: Timeline,
    ) -> Response | Stream:
        resource = paths.parse_resource(requested.path)
        if resource is not None and resource.resource:
            review = discovery.find_review(resource.group, resource.version, resource.resource)
            if review is not None and not resource.name:
                if request.method != "POST":
                    raise rejections.not_allowed()
                if review is discovery.BINDINGS:
                    return await self._objects.bind(request, timeline, resource, identity)
                return await reviews.answer(
                    request, review, resource, identity, timeline.runtime, self._reviewing
                )
            rights = None
            if authorization.is_judged_by_content(request, resource):
                rights = self._authorizer.rights(timeline.runtime, identity, request, resource)
            return await self._objects.answer(request, timeline, resource, identity, rights)
        return self._document(request, requested, timeline)

    def _document(
        self, request: HttpRequest, requested: RequestedTimeline, timeline: Timeline
    ) -> Response:
        """The discovery document, OpenAPI document or version at a path."""
        profile = timeline.views.profile
        customs = tuple(definitions.all_kinds(timeline.views.objects))
        path = requested.path.rstrip("/") or "/"
        response: Response | None = None
        documents = discovery.of_profile(profile, customs)
        if path == "/version":
            response = Response(encode(version_document(profile)))
        elif path.startswith("/openapi/"):
            response = self._openapi_of(profile, customs).answer(request, path, requested.prefix)
        elif path.startswith("/api"):
            response = documents.answer(request, path)
            if response is None and documents.knows_beginning(path):
                raise rejections.unknown_resource()
        elif path == "/":
            response = Response(encode({"paths": _PATHS}))
        elif path in ("/healthz", "/livez", "/readyz"):
            response = Response(b"ok", content_type=TEXT)
        if response is None and path.startswith("/openapi/v3/"):
            return Response(b"", status=404, content_type=b"")
        if response is None:
            return status.page_not_found()
        if request.method not in ("GET", "HEAD"):
            raise rejections.not_allowed()
        return response

    def _openapi_of(self, profile: Profile, customs: tuple[Kind, ...]) -> Openapi:
        """The documents of a profile; the documents of custom kinds share all others with it."""
        settings = encode(profile.settings())
        documents = self._openapi.get(settings)
        if documents is None:
            documents = self._openapi[settings] = Openapi(profile, self._schemas(profile.version))
        return documents.with_customs(customs)


def create_app(
    histories: Histories,
    *,
    schemas: SchemasOf,
    meter: Meter,
    limits: ApiLimits | None = None,
    credentials: Credentials | None = None,
    authorization: Authorization | None = None,
    render_metrics: Callable[[], str] | None = None,
    beside: Beside = Beside(),
) -> Application:
    """The ASGI application over running histories.

    `schemas` returns the schemas of a release, `render_metrics` the text of `/metrics` (without it
    the page is empty). The histories must be inside `running()` while requests are served.
    """
    return Application(
        histories,
        schemas=schemas,
        meter=meter,
        render_metrics=render_metrics,
        limits=limits or ApiLimits(),
        credentials=credentials or Credentials(),
        authorization=authorization or Authorization(),
        beside=beside,
    )


_HEALTH = frozenset(
    {"/healthz", "/healthz/etcd", "/healthz/log", "/healthz/ping", "/livez", "/readyz"}
)

_PATHS = [
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/redra/v1",
    "/ui/",
    "/version",
]


def _refused(request: HttpRequest, answer: Response, problem: Exception) -> Response:
    """The response to a request that failed: a page for a page, unless the client
    accepts JSON first."""
    cause = problem.__cause__
    if answer.status == _NOT_AVAILABLE and cause is not None:
        # The client gets our description; an administrator may need the message of the cause.
        _log.warning("a request was answered %d: %s (%s)", answer.status, problem, cause)
    wants_json = request.header(b"accept").startswith("application/json")
    is_page = paths.is_page(request.path) and not wants_json
    return responses.problem(problem, answer.status, request) if is_page else answer


async def _live(receive: Receive, send: Send) -> None:
    """Acknowledge the server's start and stop; bootstrap starts and stops redra itself."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _refuse_websocket(receive: Receive, send: Send) -> None:
    """Close a WebSocket, so that the server answers 403: exec and the like are not emulated."""
    await receive()
    await send({"type": "websocket.close", "code": 1000})


def _watch_bounds(limits: ApiLimits) -> WatchBounds:
    return WatchBounds(
        watchers_max=limits.watchers_max,
        seconds_min=limits.watch_seconds_min,
        seconds_max=limits.watch_seconds_max,
        bookmark_seconds=limits.bookmark_seconds,
        revision_wait_seconds=limits.revision_wait_seconds,
        frames_max=limits.frames_max,
        first_pages_max=limits.first_pages_max,
        retained_revisions=limits.retained_revisions,
    )


def _list_bounds(limits: ApiLimits) -> ListBounds:
    return ListBounds(
        snapshots_max=limits.snapshots_max,
        page_max=limits.list_page_max,
        revision_wait_seconds=limits.revision_wait_seconds,
        retained_revisions=limits.retained_revisions,
    )
