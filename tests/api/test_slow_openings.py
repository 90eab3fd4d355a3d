"""A history that takes long to open: the others are served, and its requests get a status."""

from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from app.adapters.memory import MemoryStore
from app.domain.errors import HistoryOpening, NotFound
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.domain.values import api_groups
from app.service.answering.openings import RETRY_SECONDS_MAX, OpeningProgress
from tests import draws
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.api.test_authentication import ROLES
from tests.api.test_readers import CLUSTER, PATHS, RBAC, READERS, bind, filled, headers, known
from tests.kept import Kept

LONG = "/h/long"
ANSWERS = [
    f"{LONG}/api",
    f"{LONG}/apis",
    f"{LONG}{CONFIG_MAPS}",
    f"{LONG}{CONFIG_MAPS}?watch=true",
    f"{LONG}@3{CONFIG_MAPS}",
    "/redra/v1/histories/long/findings",
    "/redra/v1/histories/long/events",
    "/redra/v1/histories/long/diff?with=default",
    "/redra/v1/histories/default/diff?with=long",
]


class SlowLog:
    """The log of a port; it holds back the events of one history until it is told to go on."""

    def __init__(self):
        self._log = None
        self.history = None
        self.may_go_on = anyio.Event()
        self.reads = 0
        self.rule_reads = 0

    def around(self, log):
        """This log, around another one."""
        self._log = log
        return self

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def read(self, history, *, after, limit, until=None):
        if history == self.history and limit > 1:
            self.reads += 1
            # The first page comes at once: it is how far the history is read.
            if after:
                await self.may_go_on.wait()
            limit = min(limit, 3)
        return await self._log.read(history, after=after, limit=limit, until=until)

    async def objects_at(self, history, revision, *, group=None, **options):
        self.rule_reads += history == self.history and group == api_groups.RBAC
        return await self._log.objects_at(history, revision, group=group, **options)


@asynccontextmanager
async def opening_slowly():
    """A server with a history of which only the first three events can be read yet."""
    log = SlowLog()
    async with serving(around_log=log.around) as server:
        await server.post("/redra/v1/histories", {"name": "long"})
        for number in range(4):
            await server.post(f"{LONG}{CONFIG_MAPS}", config_map(f"m-{number}"))
        await server.histories.close("long")
        log.history = (await server.histories.info("long")).id
        server.histories.patience_seconds = 0
        yield server, log


async def test_request_to_a_history_that_is_being_opened_is_told_how_far_it_is():
    async with opening_slowly() as (server, log):
        last = (await server.get("/redra/v1/histories/long"))["revision"]
        for path in ANSWERS:
            answer = await server.raw("GET", path)
            await anyio.wait_all_tasks_blocked()
            answer = await server.raw("GET", path)
            assert answer.status_code == 503, path
            assert int(answer.headers["retry-after"]) >= 1
            status = answer.json()
            assert (status["kind"], status["reason"]) == ("Status", "ServiceUnavailable")
            assert status["message"] == (
                f"the history 'long' is being opened: 3 of {last} events are read"
            )
            assert status["details"]["retryAfterSeconds"] == int(answer.headers["retry-after"])
        assert log.reads == 2, "it is opened once, however many requests wait for it"
        log.may_go_on.set()
        server.histories.patience_seconds = None
        assert len((await server.get(f"{LONG}{CONFIG_MAPS}"))["items"]) == 4
        assert (await server.get("/redra/v1/histories/long"))["opening"] == ""


async def test_other_histories_are_served_opened_and_closed_meanwhile():
    async with opening_slowly() as (server, _):
        server.tasks.start_soon(server.histories.wait_open, "long")
        await anyio.wait_all_tasks_blocked()
        server.histories.patience_seconds = None
        await server.get(CONFIG_MAPS)
        await server.post("/redra/v1/histories", {"name": "other"})
        await server.post(f"/h/other{CONFIG_MAPS}", config_map("m"))
        await server.histories.close("other")
        assert len((await server.get(f"/h/other{CONFIG_MAPS}"))["items"]) == 1
        await server.histories.look_again()


async def test_health_and_the_list_of_histories_say_what_is_being_opened():
    async with opening_slowly() as (server, log):
        await server.raw("GET", f"{LONG}{CONFIG_MAPS}")
        await anyio.wait_all_tasks_blocked()
        said = "the history 'long' is being opened: 3 of "
        for path in ("/healthz", "/readyz"):
            answer = await server.raw("GET", path)
            assert answer.status_code == 200
            assert said in answer.text
        items = {one["name"]: one for one in (await server.get("/redra/v1/histories"))["items"]}
        assert items["long"]["opening"].startswith(said)
        assert items["default"]["opening"] == ""
        log.may_go_on.set()
        await server.histories.wait_open("long")
        assert (await server.raw("GET", "/readyz")).text == "ok"


async def test_request_that_goes_away_does_not_end_the_opening():
    async with opening_slowly() as (server, log):
        with anyio.move_on_after(0):
            await server.histories.wait_open("long")
        await anyio.wait_all_tasks_blocked()
        assert [progress.info.name for progress in server.histories.opening()] == ["long"]
        log.may_go_on.set()
        await server.histories.wait_open("long")
        assert server.histories.opening() == []


@pytest.mark.parametrize("change", ["rename", "delete"])
async def test_history_that_is_renamed_or_deleted_while_it_is_opened_is_not_served(change):
    async with opening_slowly() as (server, log):
        with pytest.raises(HistoryOpening):
            await server.histories.open("long")
        if change == "rename":
            await server.histories.rename("long", "longer")
        else:
            await server.histories.delete("long", by="somebody")
        log.may_go_on.set()
        with pytest.raises(NotFound):
            await server.histories.wait_open("long")
        assert "long" not in [one.info.name for one in server.histories.open_runtimes()]
        if change == "rename":
            assert (await server.histories.wait_open("longer")).info.name == "longer"


@pytest.mark.parametrize(
    ("read", "begun_at", "seconds", "expected"),
    [
        # as long as the rest takes at the pace so far
        (50, 0, 4.0, 4), (90, 0, 90.0, 10), (75, 50, 5.0, 5), (60, 50, 2.5, 10),
        # nothing read yet, nearly done, beyond the bound
        (0, 0, 60.0, 1), (50, 50, 9.0, 1), (99, 0, 1.0, 1), (1, 0, 60.0, RETRY_SECONDS_MAX),
    ],
)  # fmt: skip
def test_pause_that_is_proposed_grows_with_the_rest(read, begun_at, seconds, expected):
    progress = OpeningProgress(
        info=HistoryInfo(id=HistoryId(1), name="long"),
        read=Revision(read),
        last=Revision(100),
        begun_at=Revision(begun_at),
        seconds=seconds,
    )
    assert progress.retry_seconds == expected


UNOPENED = [
    f"/h/one{CONFIG_MAPS}",
    "/h/one@3/api/v1/nodes",
    "/redra/v1/histories/one",
    "/redra/v1/histories/one/findings",
    "/ui/h/one/",
]


@asynccontextmanager
async def guarded_and_opening():
    """A server with rules for each history, of which `one` is being opened."""
    log = SlowLog()
    async with filled(around_log=log.around) as server:
        await server.histories.close("one")
        log.history = (await server.histories.info("one")).id
        server.histories.patience_seconds = 0
        yield server, log


_OPEN = Kept[tuple[str, str], tuple[int, str]]()
"""The answers of a server that has opened the history, by reader and path."""


async def answers_when_open():
    """Those answers, from one server for all rows."""
    if not _OPEN:
        async with filled() as server:
            for reader in READERS:
                for path in UNOPENED:
                    answer = await server.raw("GET", path, **headers(reader))
                    _OPEN[reader, path] = answer.status_code, answer.text
    return _OPEN


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("path", UNOPENED)
@pytest.mark.parametrize("reader", READERS)
async def test_only_who_may_ask_is_told_that_a_history_is_being_opened(reader, path):
    when_open = await answers_when_open()
    status, refusal = when_open[reader, path]
    # Some may know the history and not read everything that an answer is made from.
    knows = when_open[reader, "/redra/v1/histories/one"][0] == 200
    may = status != 403 or (path.startswith(("/redra/", "/ui/")) and knows)
    async with guarded_and_opening() as (server, log):
        for _ in range(2):
            answer = await server.raw("GET", path, **headers(reader))
            await anyio.wait_all_tasks_blocked()
        if may:
            assert "being opened" in answer.text or "is opening this history" in answer.text
            assert answer.status_code in (202, 503) or answer.json()["opening"]
        else:
            assert (answer.status_code, answer.text) == (403, refusal)
        log.may_go_on.set()


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("reader", READERS)
async def test_list_of_histories_shows_the_same_ones_while_one_is_being_opened(reader):
    async with guarded_and_opening() as (server, log):
        answer = await server.raw("GET", "/redra/v1/histories", **headers(reader))
        log.may_go_on.set()
        server.histories.patience_seconds = None
        await server.histories.wait_open("one")
        opened = await server.raw("GET", "/redra/v1/histories", **headers(reader))
        assert answer.status_code == opened.status_code
        if answer.status_code == 200:
            names = [[one["name"] for one in each.json()["items"]] for each in (answer, opened)]
            assert names[0] == names[1]


async def test_page_of_a_history_with_rules_waits_for_its_opening_as_others_do():
    async with guarded_and_opening() as (server, log):
        await server.raw("GET", "/ui/h/one/timeline", **headers("gus"))
        await anyio.wait_all_tasks_blocked()
        answer = await server.raw("GET", "/ui/h/one/timeline", **headers("gus"))
        assert (answer.status_code, "data-again" in answer.text) == (202, True)
        assert (await server.raw("GET", "/ui/h/one/nothing", **headers("gus"))).status_code == 404
        log.may_go_on.set()


async def test_history_that_is_not_there_is_refused_while_the_judging_one_is_being_opened():
    log = SlowLog()
    async with filled(around_log=log.around) as server:
        refused = (await server.raw("GET", f"/h/none{CONFIG_MAPS}", **headers("bob"))).text
        await server.histories.close("default")
        log.history = (await server.histories.info("default")).id
        server.histories.patience_seconds = 0
        answer = await server.raw("GET", f"/h/none{CONFIG_MAPS}", **headers("bob"))
        assert (answer.status_code, answer.text) == (403, refused)
        log.may_go_on.set()


@pytest.mark.parametrize("path", ["/redra/v1/histories/default/diff", "/ui/h/default/compare"])
async def test_comparison_with_a_history_that_may_not_be_read_does_not_tell_of_its_opening(path):
    path = f"{path}?with=one"
    async with guarded_and_opening() as (server, log):
        await bind(server, "", "bob", [PATHS, *CLUSTER])
        for reader, code in (("bob", 403), ("root", 503)):
            for _ in range(2):
                answer = await server.raw("GET", path, **headers(reader))
                await anyio.wait_all_tasks_blocked()
            assert (answer.status_code, "opened" in answer.text) == (code, code == 503), reader
        log.may_go_on.set()


async def test_rules_of_a_history_that_is_being_opened_are_read_once_and_again_after_a_change():
    store = MemoryStore()
    log = SlowLog()
    async with filled(around_log=log.around, store=store) as server:
        await server.histories.close("one")
        log.history = (await server.histories.info("one")).id
        server.histories.patience_seconds = 0
        path = f"/h/one{CONFIG_MAPS}"

        async def codes():
            answers = [await server.raw("GET", path, **headers(user)) for user in ("gus", "bob")]
            return [answer.status_code for answer in answers]

        await anyio.wait_all_tasks_blocked()
        first = await codes()
        reads = log.rule_reads
        assert first[0] == 503
        assert reads
        for _ in range(3):
            assert await codes() == first
        assert log.rule_reads == reads
        # Another process takes the right away.
        async with serving(store=store, credentials=known(), authorization=ROLES) as other:
            role = f"/h/one{RBAC}/clusterroles/gus-clusterrole"
            tree = await other.get(role, **headers("root"))
            await other.put(role, {**tree, "rules": [PATHS]}, **headers("root"))
        assert (await codes())[0] == 403
        assert log.rule_reads > reads
        log.may_go_on.set()


async def test_requests_that_come_together_read_the_rules_once():
    async with guarded_and_opening() as (server, log):
        await server.raw("GET", "/h/one/api", **headers("gus"))
        alone, log.rule_reads = log.rule_reads, 0
    async with guarded_and_opening() as (server, log), anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(partial(server.raw, "GET", "/h/one/api", **headers("gus")))
        await anyio.wait_all_tasks_blocked()
        assert log.rule_reads == alone
        log.may_go_on.set()
