"""The target of the API fuzzers, and the judge of its answers.

`Target` is the application in process over the memory adapters: a case costs a millisecond. The
rules are the same for a real server (`live.py`): no 5xx, a Status with a reason for every refusal,
JSON for everything else, bounded memory, and afterwards a log with a valid chain, whose new fold
gives the served views.
"""

import faulthandler
import json
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from anyio.from_thread import start_blocking_portal

from app.adapters.memory import MemoryStore
from app.analysis.views import LiveViews
from app.api.server.limits import ApiLimits
from app.domain.log import Revision
from app.domain.log.chain import check_chain, genesis_of
from app.domain.objects.profile import Profile
from tests.api.serving import running_app

PROFILE = Profile(gates={"DRAResourcePoolStatus": True})
LIMITS = ApiLimits(
    watch_seconds_min=0.001,
    watch_seconds_max=0.002,
    bookmark_seconds=0.0005,
    revision_wait_seconds=0.001,
)
HANG_SECONDS = 60
"""A case that takes longer has found an endless loop; its stack is printed and the run ends."""
IDLE_SECONDS = 30
"""A request that waits for longer than this waits for nothing."""
CASE_GROWTH_MAX = 200 * 1024
"""KiB by which the peak of memory may rise within one case."""
RUN_GROWTH_MAX = 1024 * 1024
"""KiB by which it may rise in a whole run, the log in memory included."""
PAGE = 5_000


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request. `body` is None for no body; `headers` are in lower case."""

    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    headers: dict = field(default_factory=dict)

    def __str__(self):
        body = "" if self.body is None else f" {self.body[:600]!r} ({len(self.body)} bytes)"
        return f"{self.method} {self.path}?{self.query} {self.headers}{body}"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The answer to a request."""

    code: int
    headers: dict
    body: bytes


class Finding(AssertionError):
    """A broken promise of the server, with the request and the answer."""

    def __init__(self, what, sent, answered):
        super().__init__(f"{what}\n  sent: {sent}\n  got: {answered.code} {answered.body[:600]!r}")


class Judge:
    """Judges each answer and counts the codes."""

    def __init__(self):
        self.codes = Counter()
        self._begin = self._before = _peak()

    def begin(self):
        """Sets the memory baseline of a case; memory used before belongs to the generator."""
        self._before = _peak()

    def judge(self, sent, answered):
        """Checks an answer. Raises Finding for a broken promise."""
        self.codes[answered.code] += 1
        grown = _peak() - self._before
        if grown > CASE_GROWTH_MAX:
            raise Finding(f"memory rose by {grown // 1024} MiB", sent, answered)
        is_late = answered.code == 504 and sent.method == "HEAD"
        if answered.code >= 500 and _reason(answered) != "Timeout" and not is_late:
            raise Finding("the server failed", sent, answered)
        if answered.code >= 400:
            _check_refusal(sent, answered)
        elif answered.body and "json" in answered.headers.get("content-type", ""):
            _check_json(sent, answered)

    def settle(self):
        """Checks the memory growth of the whole run."""
        grown = _peak() - self._begin
        assert grown < RUN_GROWTH_MAX, f"memory rose by {grown // 1024} MiB over the run"

    def report(self, name):
        """Prints one line with the counts and the memory growth."""
        counted = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        grown = (_peak() - self._begin) // 1024
        print(f"{name}: {self.codes.total()} requests ({counted}); peak memory +{grown} MiB")


class Target:
    """The application in process; `send` may be called from any thread, one call at a time."""

    def __init__(self, portal, app, histories):
        self._portal = portal
        self._app = app
        self._histories = histories
        self.judge = Judge()

    def send(self, sent):
        """Sends one request and judges its answer."""
        self.judge.begin()
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=sys.__stderr__)
        try:
            answered = self._portal.call(self._ask, sent)
        finally:
            faulthandler.cancel_dump_traceback_later()
        self.judge.judge(sent, answered)
        return answered

    def settle(self):
        """Checks the chain, that a new fold gives the served views, and the run as a whole."""
        self._portal.call(self._check_history)
        self.judge.settle()

    async def _ask(self, sent):
        messages = []
        body = sent.body or b""
        headers = {"host": "redra", **sent.headers}
        if sent.body is not None:
            headers.setdefault("content-length", str(len(body)))
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if waiting:
                return waiting.pop()
            await anyio.sleep_forever()
            return {"type": "http.disconnect"}

        async def send(message):
            messages.append(message)

        scope = {
            "type": "http",
            "method": sent.method,
            "path": sent.path,
            "query_string": sent.query.encode("utf-8", "surrogateescape"),
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1", "replace"))
                for name, value in headers.items()
            ],
        }
        with anyio.move_on_after(IDLE_SECONDS) as waiting_for:
            await self._app(scope, receive, send)
        if waiting_for.cancelled_caught:
            raise AssertionError(f"no answer within {IDLE_SECONDS} s\n  sent: {sent}")
        return Answered(
            code=messages[0]["status"],
            headers={k.decode("latin-1"): v.decode("latin-1") for k, v in messages[0]["headers"]},
            body=b"".join(message.get("body", b"") for message in messages[1:]),
        )

    async def _check_history(self):
        runtime = await self._histories.open("default")
        head = await runtime.log.head(runtime.info.id)
        again = LiveViews(PROFILE)
        after, last = Revision(0), genesis_of(runtime.info)
        while after < head.revision:
            events = await runtime.log.read(runtime.info.id, after=after, limit=PAGE)
            last = check_chain(events, after=after, hash=last)
            for event in events:
                again.fold(event)
            after = events[-1].revision
        assert last == head.hash
        assert list(again.objects.dump_parts()) == list(runtime.views.objects.dump_parts())
        assert again.unreadable == runtime.views.unreadable
        assert not runtime.waiting_writes


@contextmanager
def target() -> Iterator[Target]:
    """A new application; its history is checked at the end of the block, unless that raised."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            running_app(limits=LIMITS, profile=PROFILE, store=MemoryStore())
        ) as (app, histories),
    ):
        found = Target(portal, app, histories)
        yield found
        found.settle()


def _check_refusal(sent, answered):
    if answered.code == 404 and answered.body == b"404 page not found\n":
        return
    if sent.method == "HEAD":
        return
    status = _decoded(answered)
    if not isinstance(status, dict) or status.get("kind") != "Status":
        raise Finding("a refusal is no Status", sent, answered)
    if not status.get("reason") or not status.get("message"):
        raise Finding("a Status says no reason", sent, answered)
    if (status.get("code"), status.get("status")) != (answered.code, "Failure"):
        raise Finding("a Status disagrees with its code", sent, answered)


def _check_json(sent, answered):
    is_lines = "watch" in sent.query or "ndjson" in answered.headers["content-type"]
    lines = answered.body.splitlines() if is_lines else [answered.body]
    try:
        for line in lines:
            json.loads(line)
    except ValueError as problem:
        raise Finding("an answer is no JSON", sent, answered) from problem


def _reason(answered):
    status = _decoded(answered)
    return status.get("reason") if isinstance(status, dict) else None


def _decoded(answered):
    try:
        return json.loads(answered.body)
    except ValueError:
        return None


def _peak():
    """The peak memory of this process in KiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak
