"""A paced replay over the API: orders, what refuses them, and what clients that follow receive."""

from contextlib import asynccontextmanager

import anyio
import pytest

from app.adapters.clock import SystemClock
from app.api.access.authorization import Authorization
from app.api.identity.authentication import Credentials
from app.domain.log import Actor
from app.domain.objects.access.rules import AccessRule, Binding
from app.service.pacing import stage
from app.service.pacing.player import Player
from app.service.pacing.script import PlayedSpan
from app.service.pacing.stage import StageTarget
from tests.api.serving import config_map, serving

RECORDING = "/h/night/api/v1/namespaces/default/configmaps"
PACED = "/h/night~paced/api/v1/namespaces/default/configmaps"
REPLAY = "/redra/v1/histories/night~paced/replay"


@asynccontextmanager
async def playing(speed=0.0, own=None, **options):
    """A recording of four writes after the first state, and a server that plays it."""
    players, clock, own = {}, SystemClock(), own or {}
    async with serving(players=players, clock=clock, **options) as server:
        await server.post("/redra/v1/histories", {"name": "night"}, **own)
        for name in ("a", "b", "c"):
            await server.post(RECORDING, config_map(name, at="first"), **own)
        await server.put(f"{RECORDING}/a", config_map("a", at="second"), **own)
        runtime = await server.histories.open("night")
        head = runtime.head
        first = StageTarget(revision=head.revision - 4, time=head.time)
        info = await stage.make(runtime.log, runtime.info, first, clock.now())
        player = players[info.name] = Player(
            log=runtime.log,
            clock=clock,
            parent=runtime.info,
            info=info,
            open_runtime=lambda: server.histories.open(info.name),
            span=PlayedSpan(begin=first, end=StageTarget(revision=head.revision, time=head.time)),
            speed=speed,
        )
        await player.begin(is_new=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(player.run)
            yield server
            tasks.cancel_scope.cancel()


async def shown(server):
    """What the replay shows of each config map."""
    items = (await server.get(PACED))["items"]
    return {
        item["metadata"]["name"]: item["data"].get("at", "")
        for item in items
        if item["metadata"]["name"] != "kube-root-ca.crt"
    }


async def test_orders_move_the_replay_and_the_answer_says_where_it_stands():
    async with playing() as server:
        state = await server.get(REPLAY)
        assert (state["state"], state["source"], state["shown"]) == ("paused", "night", 0)
        assert state["next"]["object"] == "configmaps/default/a"
        assert await shown(server) == {}
        state = await server.post(REPLAY, {"step": {}}, code=200)
        assert (state["state"], state["shown"]) == ("paused", 1)
        assert await shown(server) == {"a": "first"}
        state = await server.post(REPLAY, {"step": {"object": "configmap/default/c"}}, code=200)
        assert await shown(server) == {"a": "first", "b": "first", "c": "first"}
        state = await server.post(REPLAY, {"seek": state["end_revision"]}, code=200)
        assert state["state"] == "ended"
        assert state["next"] is None
        assert (await shown(server))["a"] == "second"


async def test_conflicts_are_listed_with_the_object_and_the_fields():
    async with playing() as server:
        await server.post(REPLAY, {"step": {}}, code=200)
        await server.put(f"{PACED}/a", config_map("a", at="mine"))
        state = await server.post(REPLAY, {"speed": "max", "paused": False}, code=200)
        while state["state"] != "ended":
            state = await server.get(REPLAY)
        assert (await shown(server))["a"] == "mine"
        assert state["conflicts"] == 1
        (conflict,) = state["latest_conflicts"]
        assert conflict["object"] == "configmaps/default/a"
        assert (conflict["conflict"], conflict["places"]) == ("fields", ["data.at"])
        assert conflict["recorded"] == state["end_revision"]
        page = await server.get("/redra/v1/histories/night~paced/timeline?name=a")
        assert [each["kind"] for each in page["items"]][:1] == ["ConflictObserved"]
        page = await server.raw("GET", "/ui/h/night~paced/timeline?name=a")
        assert page.status_code == 200
        link, row = page.text.split("<main", 1)
        assert 'timeline?kind=ConflictObserved"' in link
        assert ">1 conflict</a>" in link
        assert '<tr id="r' in row
        assert row.count('class="trouble"') == 1


async def test_watch_from_before_a_move_backwards_is_told_to_list_anew():
    async with playing(speed=float("inf")) as server:
        while (await server.get(REPLAY))["state"] != "ended":
            await anyio.lowlevel.checkpoint()
        version = (await server.get(PACED))["metadata"]["resourceVersion"]
        async with server.watch(f"{PACED}?watch=true&resourceVersion={version}") as running:
            await server.post(REPLAY, {"paused": True, "seek": "1"}, code=200)
            line = await running.line()
            assert (line["type"], line["object"]["code"]) == ("ERROR", 410)
            assert line["object"]["reason"] == "Expired"
        async with server.watch(f"{PACED}?watch=true&resourceVersion={version}") as late:
            line = await late.line()
            assert (line["type"], line["object"]["code"]) == ("ERROR", 410)
        exact = f"{PACED}?resourceVersion={version}&resourceVersionMatch=Exact"
        await server.get(exact, code=410)
        past = await server.get(f"/h/night~paced@{version}/api/v1/namespaces/default/configmaps")
        assert len(past["items"]) >= 3
        fresh = (await server.get(PACED))["metadata"]["resourceVersion"]
        query = f"watch=true&resourceVersion={fresh}"
        async with server.watch(f"{PACED}?{query}") as running:
            await server.post(REPLAY, {"speed": "max", "paused": False}, code=200)
            lines = [await running.line() for _ in range(4)]
        changes = [(line["type"], line["object"]["metadata"]["name"]) for line in lines]
        assert changes == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("MODIFIED", "a")]


@pytest.mark.parametrize(
    ("order", "code", "words"),
    [
        ({"speed": "quick"}, 400, "is not a speed"),
        ({"sped": "1x"}, 400, "sped"),
        ({"seek": "0"}, 400, "is before the first event"),
        ({"seek": 0}, 400, "is before the first event"),
        ({"seek": -1}, 400, "neither a revision nor an instant"),
        ({"seek": True}, 400, "a number or a text"),
        ({"seek": 1.5}, 400, "a number or a text"),
        ({"seek": "99999"}, 404, "has no revision"),
        ({"seek": 99999}, 404, "has no revision"),
        ({"seek": "in a while"}, 400, "neither a revision nor an instant"),
        ({"step": {"object": "gadget/x"}}, 400, "there is no kind"),
        ({"step": {"object": "configmap"}}, 400, "does not name an object"),
        ({"step": {"object": "configmap/default/zzz"}}, 404, "no such event"),
        ({"step": {"decision": True}}, 404, "no such event"),
        (b"{", 400, ""),
    ],
)
async def test_order_that_cannot_be_followed_changes_nothing(order, code, words):
    async with playing() as server:
        before = await server.get(REPLAY)
        answer = await server.raw("POST", REPLAY, order)
        assert answer.status_code == code, answer.text
        assert words in answer.json()["message"]
        assert await server.get(REPLAY) == before


async def test_history_that_is_not_played_says_so():
    async with playing() as server:
        state = await server.get("/redra/v1/histories/night/replay")
        assert (state["history"], state["state"]) == ("night", "none")
        await server.post("/redra/v1/histories/night/replay", {"speed": "1x"}, code=404)


async def test_nobody_can_give_the_name_of_a_replay():
    async with playing() as server:
        answer = await server.raw("POST", "/redra/v1/histories", {"name": "day~paced"})
        assert answer.status_code == 400


async def test_no_controller_runs_where_recorded_ones_are_played():
    async with playing() as server:
        items = (await server.get("/redra/v1/histories/night~paced/controllers"))["items"]
        assert {item["state"] for item in items} == {"recorded"}


async def test_step_to_an_object_tells_nothing_of_it_to_who_may_not_read_it():
    """Whether a step ends at an object, and when, tells that it is there."""
    actors = {user: Actor(user=user, groups=("system:authenticated",)) for user in ("ann", "bob")}
    actors["root"] = Actor(user="root", groups=("system:masters",))
    paths = AccessRule(verbs=frozenset(("get", "post")), paths=("/redra/v1/*",))
    maps = AccessRule(
        verbs=frozenset(("get",)), groups=frozenset(("",)), resources=frozenset(("configmaps",))
    )
    bindings = (
        Binding(users=frozenset(("ann", "bob")), rules=(paths,)),
        Binding(users=frozenset(("ann",)), rules=(maps,), namespace="default"),
    )
    as_user = {user: {"authorization": f"Bearer {user}"} for user in actors}
    async with playing(
        own=as_user["root"],
        credentials=Credentials(tokens=actors, anonymous=None),
        authorization=Authorization(is_open=False, policy=lambda history: bindings),
    ) as server:
        told = {}
        for user in ("bob", "ann"):
            for name in ("zzz", "c"):
                order = {"step": {"object": f"configmap/default/{name}"}}
                answer = await server.raw("POST", REPLAY, order, **as_user[user])
                told[user, name] = answer.status_code
        assert told == {
            ("bob", "zzz"): 403, ("bob", "c"): 403, ("ann", "zzz"): 404, ("ann", "c"): 200,
        }  # fmt: skip
