"""The gauge of running watches."""

from app.adapters.telemetry import Telemetry
from app.api.server.messages import HttpRequest, RequestLabels
from app.api.server.metrics import RequestMeter

NAME = "apiserver_longrunning_requests"


async def nothing():
    """Nobody reads the body."""


def watch_of(resource):
    request = HttpRequest(
        {"method": "GET", "path": "/", "headers": [], "query_string": b""}, nothing
    )
    request.subject = RequestLabels(history="h", verb="WATCH", version="v1", resource=resource)
    return request


def test_watches_are_counted_while_they_run_by_what_they_watch():
    telemetry = Telemetry()
    meter = RequestMeter(telemetry, None, telemetry.render)
    pods, nodes = watch_of("pods"), watch_of("nodes")

    def running(request):
        return telemetry.value(NAME, **request.subject._asdict())

    meter.watch_started(pods)
    meter.watch_started(pods)
    meter.watch_started(nodes)
    assert (running(pods), running(nodes)) == (2, 1)
    meter.watch_ended(pods)
    meter.watch_ended(nodes)
    assert (running(pods), running(nodes)) == (1, 0)
    meter.watch_ended(pods)
    meter.watch_started(pods)
    assert running(pods) == 1
