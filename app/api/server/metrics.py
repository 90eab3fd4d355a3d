"""The `/metrics` page, and counts of requests under the metric names of real API servers."""

from collections.abc import Callable
from typing import TypeAlias

from app.api.server.messages import HttpRequest, RequestLabels, Response
from app.domain.values.bounded import Bounded
from app.domain.values.timestamps import SECOND
from app.ports import Meter
from app.service.histories import Histories

_CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
METRIC_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
"""The verbs in the metrics of API servers."""

_OTHER_VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


_Series: TypeAlias = tuple[Callable[[], None], Callable[[float], None]]
"""Counts a request, and observes its duration in seconds."""

_KNOWN_MAX = 2_048
"""Series that are cached by their labels; others are looked up again."""


class RequestMeter:
    """Measures responses; it must not slow requests down."""

    def __init__(
        self, meter: Meter, histories: Histories, render: Callable[[], str] | None
    ) -> None:
        self._meter = meter
        self._histories = histories
        self._render = render
        self._known: Bounded[tuple[RequestLabels, int], _Series] = Bounded(_KNOWN_MAX)
        self._running: dict[RequestLabels, int] = {}

    def answered(self, request: HttpRequest, status: int, seconds: float) -> None:
        """Record a response."""
        subject = request.subject
        if not subject.verb:
            method = request.method if request.method in _OTHER_VERBS else "OTHER"
            subject = RequestLabels(verb=method)
        known = self._known.get((subject, status))
        if known is None:
            known = self._known[subject, status] = self._series_of(subject, status)
        count, observe = known
        count()
        observe(seconds)

    def _series_of(self, subject: RequestLabels, status: int) -> _Series:
        labels = subject._asdict()
        return (
            self._meter.counter("apiserver_request_total", code=str(status), **labels),
            self._meter.observer("apiserver_request_duration_seconds", **labels),
        )

    def watch_started(self, request: HttpRequest) -> None:
        """Record the start of a watch."""
        labels = request.subject._asdict()
        self._meter.count("apiserver_request_total", code="200", **labels)
        running = self._running[request.subject] = self._running.get(request.subject, 0) + 1
        self._meter.gauge("apiserver_longrunning_requests", running, **labels)

    def watch_ended(self, request: HttpRequest) -> None:
        """Record the end of a started watch."""
        running = self._running.pop(request.subject) - 1
        if running:
            self._running[request.subject] = running
        self._meter.gauge("apiserver_longrunning_requests", running, **request.subject._asdict())

    def page(self) -> Response:
        """All metrics in Prometheus' text format."""
        for runtime in self._histories.open_runtimes():
            name = runtime.info.name
            self._meter.gauge("redra_revision", runtime.views.revision, history=name)
            self._meter.gauge("redra_waiting_writes", runtime.waiting_writes, history=name)
            ahead = runtime.clock.ahead / SECOND
            self._meter.gauge("redra_clock_skew_seconds", ahead, history=name)
            self._meter.gauge("redra_followers", runtime.watches.count(), history=name)
            objects = runtime.views.objects
            for group, resource in objects.resources():
                self._meter.gauge(
                    "apiserver_resource_objects",
                    objects.count(group, resource),
                    group=group,
                    resource=resource,
                    history=name,
                )
        text = self._render() if self._render is not None else ""
        return Response(text.encode(), content_type=_CONTENT_TYPE)
