"""Pictures hold as many shapes as their answer has facts, and stay within their bounds."""

import random

import pytest

from app.analysis.device_map import MapBounds
from app.analysis.lanes import LaneBounds, Lanes
from app.api.server.limits import ApiLimits
from app.web.pages import capacity
from app.web.pictures import axes, lanes
from tests.api.serving import CLAIMS, claim, pod, serving
from tests.web.planted import DRIVER, PODS, SLICES, plant, slice_of
from tests.web.reading import read

JSON = "/redra/v1/histories/default"
UI = "/ui/h/default"


async def page(server, path):
    answer = await server.raw("GET", path)
    assert answer.status_code == 200, answer.text
    return read(answer.text)


async def allocate(server, name, *devices, pool="p", pods=()):
    await server.post(CLAIMS, claim(name))
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device} for device in devices
    ]
    users = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    answer = await server.patch(f"{CLAIMS}/{name}/status", {"status": status})
    return int(answer["metadata"]["resourceVersion"])


def named(lane):
    return (lane["resource"], lane["name"])


async def test_lanes_tell_states_from_when_to_when():
    async with serving() as server:
        made = int((await server.post(PODS, pod("p")))["metadata"]["resourceVersion"])
        given = await allocate(server, "c", "gpu-0", pods=("p",))
        body = {"target": {"kind": "Node", "name": "n"}, "metadata": {"name": "p"}}
        await server.post(f"{PODS}/p/binding", body)
        answer = await server.get(f"{JSON}/lanes")
        lanes = {named(lane): lane for lane in answer["lanes"]}
        assert [(*named(lane), lane["depth"]) for lane in answer["lanes"]] == [
            ("pods", "p", 0),
            ("resourceclaims", "c", 1),
            ("devices", f"{DRIVER}/p/gpu-0", 2),
        ]

        def states(*name):
            return [(one["state"], one["begin"], one["end"]) for one in lanes[name]["states"]]

        bound = given + 1
        assert states("pods", "p") == [("waiting", made, bound), ("bound", bound, 0)]
        assert states("resourceclaims", "c") == [
            ("waiting", given - 1, given),
            ("reserved", given, 0),
        ]
        assert states("devices", f"{DRIVER}/p/gpu-0") == [("held", given, 0)]
        past = await server.get(f"{JSON}/lanes?at={made}")
        assert [named(lane) for lane in past["lanes"]] == [("pods", "p")]
        assert past["lanes"][0]["states"][0]["end"] == 0


@pytest.mark.parametrize("query", ["", "?name=p-1", "?namespace=nowhere", "?name=gpu-0"])
async def test_lanes_page_shows_the_lanes_of_the_json(query):
    async with serving() as server:
        for number in range(3):
            await server.post(PODS, pod(f"p-{number}"))
            await allocate(server, f"c-{number}", f"gpu-{number}", pods=(f"p-{number}",))
        answer = await server.get(f"{JSON}/lanes{query}")
        expected = {"": 9, "?name=p-1": 3, "?namespace=nowhere": 0, "?name=gpu-0": 3}[query]
        assert len(answer["lanes"]) == expected
        root = await page(server, f"{UI}/lanes{query}")
        if not expected:
            assert "No pod, claim or node matches the filter." in root.one("main").text
            return
        bars = [link for link in root.one("div", "picture").all("a") if link.all("rect")]
        states = [state for lane in answer["lanes"] for state in lane["states"]]
        told = [node.one("title").text for node in bars]
        assert len(told) == len(states)
        assert all(
            text.startswith(state["state"]) and f"from revision {state['begin']} " in text
            for text, state in zip(told, states, strict=True)
        )
        rows = root.one("table", "lanes").one("tbody").all("tr")
        shown = [row.one("span", "name").text.rpartition("/")[2] for row in rows]
        assert shown == [lane["name"].rpartition("/")[2] for lane in answer["lanes"]]
        assert [len(row.all("span", "state")) for row in rows] == [
            len(lane["states"]) for lane in answer["lanes"]
        ]


async def test_legend_of_lanes_explains_each_colour_and_each_shape():
    async with serving() as server:
        await server.post(PODS, pod("p"))
        await allocate(server, "c", "gpu-0", pods=("p",))
        await server.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        root = await page(server, f"{UI}/lanes")
        drawn = {
            link.one("rect").attributes["class"]
            for link in root.one("div", "picture").all("a")
            if link.all("rect")
        }
        colours = {classes.partition(" ")[0] for classes in drawn}
        shapes = {classes.partition(" ")[2] for classes in drawn}
        assert colours == {"pod", "claim", "device", "node"}
        signs = {
            item.all("rect")[0].attributes["class"]: item.text
            for item in root.one("ul", "legend").all("li")
            if item.all("rect") and "class" in item.all("rect")[0].attributes
        }
        assert all(signs[colour] == colour for colour in colours)
        assert {f"any {shape}".strip() for shape in shapes} <= signs.keys()


async def test_legend_of_the_strip_has_each_colour_and_shape_of_it_and_no_other():
    signs = ("quiet", "claimed", "decided", "trouble", "finding")
    async with serving() as server:
        await plant(server, 3)
        for moment in ("", "@2", "@9"):
            root = await page(server, f"/ui/h/default{moment}/")
            drawn, explained = (
                {
                    each.attributes["class"]
                    for tag in ("rect", "polygon", "line")
                    for each in root.one(holder, name).all(tag)
                    if each.attributes.get("class") in signs
                }
                for holder, name in (("div", "strip"), ("span", "key"))
            )
            assert "quiet" in drawn
            assert explained == drawn


async def test_bars_and_marks_are_described_once():
    """A description that stood twice made pages of recordings heavier than their bound."""
    async with serving() as server:
        await server.post(PODS, pod("p"))
        picture = (await page(server, f"{UI}/lanes")).one("div", "picture")
        drawn = [link for link in picture.all("a") if link.attributes.get("tabindex") == "-1"]
        assert drawn
        for link in drawn:
            assert link.children[0].tag == "title"
            assert link.children[0].text
            assert len(link.all("title")) == 1
            assert "aria-label" not in link.attributes


async def test_axes_say_the_day_and_that_times_are_utc():
    async with serving() as server:
        await server.post(PODS, pod("p"))
        created = (await server.get(f"{PODS}/p"))["metadata"]["creationTimestamp"]
        picture = (await page(server, f"{UI}/lanes")).one("div", "picture")
        assert f"{created[:10]}, UTC" in [each.text for each in picture.all("text")]


@pytest.mark.parametrize(
    ("end", "labels"),
    [
        ("2026-01-02T03:00:00.000000Z", 2),
        ("2026-01-02T03:00:00.000004Z", 5),
        ("2026-01-02T03:00:00.004000Z", 7),
        ("2026-01-02T03:00:04.000000Z", 7),
    ],
)
def test_times_of_an_axis_differ_and_have_places_of_their_own(end, labels):
    answer = Lanes(history="h", revision=1, examined=1, begin="2026-01-02T03:00:00.000000Z",
                   end=end, lanes=(), gaps=())  # fmt: skip
    nothing = lanes.Ways(to_object=lambda *_: "", to_moment=lambda *_: "", to_stretch=lambda *_: "")
    times = read(str(lanes.draw(answer, nothing))).all("text")[1:]
    assert len({time.text for time in times}) == len(times) == labels
    assert len({time.attributes["x"] for time in times}) == labels


async def test_lanes_stay_within_their_bounds_and_count_what_is_left_out():
    limits = ApiLimits(lanes=LaneBounds(lanes_max=4, shapes_max=20))
    async with serving(limits=limits) as server:
        for number in range(9):
            await server.post(PODS, pod(f"p-{number}"))
        answer = await server.get(f"{JSON}/lanes")
        assert [lane["name"] for lane in answer["lanes"]] == ["p-8", "p-7", "p-6", "p-5"]
        assert answer["omitted"] == 5
        assert "5 more pods" in (await page(server, f"{UI}/lanes")).one("main").text


async def test_several_short_states_lead_to_a_picture_of_their_own():
    limits = ApiLimits(lanes=LaneBounds(states_max=3))
    async with serving(limits=limits) as server:
        await server.post(PODS, pod("p"))
        for number in range(5):
            await allocate(server, f"c-{number}", "gpu-0", pods=("p",))
            await server.delete(f"{CLAIMS}/c-{number}")
        answer = await server.get(f"{JSON}/lanes")
        device = next(lane for lane in answer["lanes"] if lane["resource"] == "devices")
        several = [state for state in device["states"] if state["count"] > 1]
        assert [state["state"] for state in several] == ["several"] * len(several)
        assert several
        assert len(device["states"]) <= 3
        root = await page(server, f"{UI}/lanes")
        (row,) = [row for row in root.one("table", "lanes").all("tr") if "/gpu-0" in row.text]
        closer = next(link for link in row.all("a") if link.text == "several")
        query = closer.attributes["href"].partition("?")[2]
        near = await server.get(f"{JSON}/lanes?{query}")
        assert near["begin"] == several[0]["began"]
        singles = next(lane for lane in near["lanes"] if lane["resource"] == "devices")
        assert singles["states"][0]["begin"] == several[0]["begin"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("since=yesterday", "'yesterday' is neither a revision nor an instant"),
        ("since=99999", "there is no revision 99999"),
        ("until=0", "there is no revision 0"),
        ("since=3&until=2", "until is before since"),
    ],
)
async def test_stretches_of_time_that_are_none_are_refused(query, problem):
    async with serving() as server:
        for number in range(3):
            await server.post(PODS, pod(f"p-{number}"))
        answer = await server.raw("GET", f"{JSON}/lanes?{query}")
        assert answer.status_code == 400
        assert problem in answer.json()["message"]
        assert problem in read((await server.raw("GET", f"{UI}/lanes?{query}")).text).text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        ((), []),
        ((1, 1, 1), [0]),
        ((1, 1, 2, 2, 3), [0, 2, 4]),
        (range(12), [0, 2, 4, 6, 8, 10]),
        ((*[1] * 9, 2, 3, 4), [0, 10]),
    ],
)
def test_columns_of_one_second_have_one_time_below(seconds, shown):
    times = [f"2026-01-02T03:04:{second:02}.5Z" for second in seconds]
    assert axes.clocks_at(times) == shown


def partitioned(pool, sets):
    """A slice that has the counters, and one with a whole device and two halves for each set."""
    counters = [
        {"name": f"set-{number}", "counters": {"memory": {"value": "8Gi"}}} for number in sets
    ]
    spec = {"driver": DRIVER, "nodeName": "n", "pool": {"name": pool, "generation": 1,
            "resourceSliceCount": 2}}  # fmt: skip
    devices = [
        {
            "name": f"gpu-{number}{part}",
            "consumesCounters": [
                {"counterSet": f"set-{number}", "counters": {"memory": {"value": amount}}}
            ],
        }
        for number in sets
        for part, amount in (("", "8Gi"), ("-half-0", "4Gi"), ("-half-1", "4Gi"))
    ]
    return [
        {"metadata": {"name": f"{pool}-counters"}, "spec": {**spec, "sharedCounters": counters}},
        {"metadata": {"name": f"{pool}-devices"}, "spec": {**spec, "devices": devices}},
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_map_agrees_with_the_views_of_counters_and_claims(seed):
    chance = random.Random(seed)
    async with serving() as server:
        for tree in partitioned("parts", range(4)):
            await server.post(SLICES, tree)
        await server.post(SLICES, slice_of("plain", devices=3))
        await server.post(SLICES, slice_of("broken", of=2))
        held = {}
        for number in range(4):
            for part in chance.choice((("",), ("-half-0",), ("-half-0", "-half-1"), ())):
                held["parts", f"gpu-{number}{part}"] = f"default/c-{len(held)}"
                await allocate(server, f"c-{len(held) - 1}", f"gpu-{number}{part}", pool="parts")
        answer = await server.get(f"{JSON}/map")
        pools = {pool["pool"]: pool for pool in answer["pools"]}
        devices = {
            (pool["pool"], device["name"]): device
            for pool in answer["pools"]
            for device in pool["devices"]
        }
        assert {
            place: device["holders"][0] for place, device in devices.items() if device["holders"]
        } == held
        for number in range(4):
            names = [f"gpu-{number}{part}" for part in ("", "-half-0", "-half-1")]
            whole, *halves = [("parts", name) in held for name in names]
            free = 8 - 8 * whole - 4 * sum(halves)
            for name, amount in zip(names, (8, 4, 4), strict=True):
                state = devices["parts", name]["state"]
                if ("parts", name) in held:
                    assert state == "held"
                else:
                    assert state == ("free" if amount <= free else "blocked"), (name, free)
        counters = (await server.get(f"{JSON}/views/counters"))["items"]
        assert {
            (row["counter_set"], float(row["used"]) / float(row["capacity"])) for row in counters
        } == {(row["set"], row["share"]) for row in pools["parts"]["counters"]}
        assert {device["state"] for device in pools["broken"]["devices"]} == {"unusable"}
        assert pools["broken"]["state"] == "incomplete"
        root = await page(server, f"{UI}/map")
        articles = root.all("article", "map-pool")
        assert [node.one("h3").one("span", "name").text for node in articles] == [
            f"{pool['driver']}/{pool['pool']}" for pool in answer["pools"]
        ]
        for node, pool in zip(articles, answer["pools"], strict=True):
            rows = node.one("details", "devices").one("tbody").all("tr")
            assert [[cell.text for cell in row.all("td")[:3]] for row in rows] == [
                [device["name"], device["state"], " ".join(device["holders"])]
                for device in pool["devices"]
            ]
            told = [title.text for title in node.all("title")]
            assert [text.partition(":")[0] for text in told] == [
                device["name"]
                for device in sorted(
                    pool["devices"],
                    key=lambda device: device["sets"] if pool["pool"] == "parts" else [],
                )
            ]


async def test_map_stays_within_its_bound():
    async with serving(limits=ApiLimits(map=MapBounds(devices_max=5))) as server:
        for number in range(4):
            await server.post(SLICES, slice_of(f"pool-{number}", devices=2))
        answer = await server.get(f"{JSON}/map")
        assert [pool["pool"] for pool in answer["pools"]] == ["pool-0", "pool-1"]
        assert answer["omitted"] == 2
        assert (await server.get(f"{JSON}/map?pool=pool-3"))["omitted"] == 0


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("288128Mi", '<span title="288128Mi">281.4Gi</span>'),
        ("1408Mi", '<span title="1408Mi">1.4Gi</span>'),
        ("320Gi", "320Gi"),
        ("2048Gi", '<span title="2048Gi">2Ti</span>'),
        ("1023Ki", "1023Ki"),
        ("784", "784"),
        ("1500m", "1500m"),
        ("0", "0"),
    ],
)
def test_amount_is_shown_in_the_unit_that_people_use_with_the_exact_one_as_title(exact, shown):
    assert capacity.amount(exact) == shown
