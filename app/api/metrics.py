"""Counting requests, under the names that real API servers use, and the `/metrics` page."""

from collections.abc import Callable

from app.api.messages import Answer, Request
from app.ports import Meter
from app.service.histories import Histories

_CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_VERBS = {
    "GET": "GET",
    "HEAD": "GET",
    "POST": "POST",
    "PUT": "PUT",
    "PATCH": "PATCH",
    "DELETE": "DELETE",
}


class RequestMeter:
    """Measures answers; nothing here may slow a request down."""

    def __init__(
        self, meter: Meter, histories: Histories, render: Callable[[], str] | None
    ) -> None:
        self._meter = meter
        self._histories = histories
        self._render = render
        self._codes: dict[int, str] = {}

    def answered(self, request: Request, status: int, seconds: float) -> None:
        """One request was answered."""
        code = self._codes.get(status)
        if code is None:
            code = self._codes[status] = str(status)
        verb = _VERBS.get(request.method, "OTHER")
        self._meter.count("apiserver_request_total", verb=verb, code=code)
        self._meter.observe("apiserver_request_duration_seconds", seconds, verb=verb)

    def watch_started(self, request: Request, running: int) -> None:
        """A watch began while `running` others run."""
        self._meter.count("apiserver_request_total", verb="WATCH", code="200")
        self._meter.gauge("apiserver_longrunning_requests", running + 1, verb="WATCH")

    def page(self) -> Answer:
        """All metrics in Prometheus' text format."""
        for runtime in self._histories.open_runtimes():
            name = runtime.info.name
            self._meter.gauge("redra_revision", runtime.views.revision, history=name)
            self._meter.gauge("redra_waiting_writes", runtime.waiting_writes, history=name)
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
        return Answer(text.encode(), content_type=_CONTENT_TYPE)
