"""What fits: one answer as JSON, as text and as a page, within its bounds and never written."""

import threading
from urllib.parse import urlencode

import anyio
import msgspec
import pytest
import yaml

from app.analysis.capacity import text
from app.analysis.capacity.answers import CapacityCourse, FitAnswer
from app.analysis.capacity.fitting import FitBounds
from app.analysis.capacity.sampling import CapacityBounds
from app.api.server import abandoning
from app.api.server.limits import ApiLimits
from app.api.server.messages import ClientGone
from tests.api.serving import claim, serving
from tests.patience import PATIENCE_SECONDS
from tests.web.planted import SLICES, slice_of
from tests.web.reading import read

JSON = "/redra/v1/histories/default"
UI = "/ui/h/default"
NODES = "/api/v1/nodes"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
FORM = {"content_type": "application/x-www-form-urlencoded"}


async def fill(server, *counts):
    """A class and nodes with so many devices."""
    for number, count in enumerate(counts, start=1):
        name = f"node-{number}"
        room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        await server.post(NODES, {"metadata": {"name": name}, "status": {"allocatable": room}})
        # A new node is not ready until somebody says so.
        await server.patch(f"{NODES}/{name}", {"spec": {"taints": None}})
        tree = slice_of(f"pool-{number}", devices=count)
        tree["spec"]["nodeName"] = name
        await server.post(SLICES, tree)
    await server.post(CLASSES, {"metadata": {"name": "gpu.example.com"}, "spec": {}})
    spec = {"spec": claim()["spec"]}
    await server.post(TEMPLATES, {"metadata": {"name": "one"}, "spec": spec})


def wanted(count):
    tree = claim("wanted")
    tree["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
    return tree


async def test_classes_templates_and_documents_are_counted_and_nothing_is_written():
    async with serving() as server:
        await fill(server, 5, 2)
        before = (await server.get(JSON))["revision"]
        every = await server.get(f"{JSON}/fit")
        assert [(one["subject"], one["count"]) for one in every["items"]] == [
            ("DeviceClass gpu.example.com", 7),
            ("ResourceClaimTemplate default/one", 7),
        ]
        (by_two,) = (await server.get(f"{JSON}/fit?class=gpu.example.com&count=2"))["items"]
        (posted,) = (await server.post(f"{JSON}/fit", {"objects": [wanted(2)]}, code=200))["items"]
        assert by_two["nodes"] == posted["nodes"] == [
            {"node": "node-1", "count": 2}, {"node": "node-2", "count": 1},
        ]  # fmt: skip
        assert posted["at_most"] == 3
        past_fit = f"{JSON}/fit?at={4}"
        (past,) = (await server.post(past_fit, {"objects": [wanted(2)]}, code=200))["items"]
        assert past["count"] == 0
        await server.get(f"{past_fit}&class=gpu.example.com", code=400)
        assert (await server.get(JSON))["revision"] == before


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("class=a&template=b", 400),
        ("count=2", 400),
        ("class=a&count=0", 400),
        ("template=none", 400),
        ("at=99999", 404),
    ],
)
async def test_question_that_cannot_be_asked_is_refused(query, code):
    async with serving() as server:
        await fill(server, 1)
        await server.get(f"{JSON}/fit?{query}", code=code)


async def test_template_that_is_not_there_is_refused_with_those_that_are():
    async with serving() as server:
        for path, query, cure in (
            ("", "template=none", "there is none"),
            (TEMPLATES, "template=none", "do you mean one?"),
            ("", "template=xyz", "there is one"),
            ("", "template=one&namespace=lab", "there is one in namespace default"),
            ("", "template=xyz&namespace=lab", "there is default/one"),
            (TEMPLATES, "template=xyz", "there are one, two"),
        ):
            if path:
                name = "one" if "none" in query else "two"
                spec = {"spec": claim()["spec"]}
                await server.post(path, {"metadata": {"name": name}, "spec": spec})
            refused = await server.get(f"{JSON}/fit?{query}", 400)
            place = "lab" if "lab" in query else "default"
            name = query.partition("&")[0].removeprefix("template=")
            assert refused["message"] == f"there is no ResourceClaimTemplate {place}/{name}; {cure}"


async def test_moment_before_the_first_event_is_told_as_such():
    async with serving() as server:
        before = "kind=node&name=n&at=2000-01-01T00:00:00Z"
        refused = await server.get(f"{JSON}/why?{before}", 404)
    assert refused["message"].startswith('nodes "n" not found before the first event')


async def test_capacity_before_the_first_event_is_of_the_beginning():
    async with serving() as server:
        await fill(server, 1)
        first = (await server.get(f"{JSON}/capacity?at=1"))["time"]
        answer = await server.get(f"{JSON}/capacity?at=0")
        assert (answer["revision"], answer["time"]) == (0, first)
        assert [each["time"] for each in answer["moments"]] == [first]
        assert (await server.get(f"{JSON}/capacity"))["time"] > first


async def test_class_that_is_not_there_is_refused_with_those_that_are():
    async with serving() as server:
        await fill(server, 1)
        refused = await server.get(f"{JSON}/fit?class=nope", code=400)
        assert refused["message"] == "there is no DeviceClass nope; there is gpu.example.com"


async def test_work_ends_when_its_client_has_gone():
    begun, ended = threading.Event(), threading.Event()

    class Leaving:
        async def receive(self):
            await anyio.to_thread.run_sync(begun.wait, PATIENCE_SECONDS)
            return {"type": "http.disconnect"}

    def work(_, goes_on):
        begun.set()
        while goes_on():
            ended.wait(0.001)
        ended.set()

    with pytest.raises(ClientGone):
        await abandoning.in_thread(Leaving(), work, None)
    assert await anyio.to_thread.run_sync(ended.wait, PATIENCE_SECONDS)


async def test_work_that_is_waited_for_gives_its_answer_or_its_problem():
    class Staying:
        async def receive(self):
            return {"type": "http.request", "body": b"", "more_body": False}

    assert await abandoning.in_thread(Staying(), lambda given, _: given + 1, 1) == 2
    with pytest.raises(ZeroDivisionError):
        await abandoning.in_thread(Staying(), lambda given, _: 1 // given, 0)


@pytest.mark.parametrize("objects", [[], [{"kind": "Nonsense"}], [{"apiVersion": "v1"}], "x"])
async def test_body_that_holds_nothing_to_fit_is_refused(objects):
    async with serving() as server:
        await server.post(f"{JSON}/fit", {"objects": objects}, code=400)


async def test_copies_and_subjects_are_bounded():
    limits = ApiLimits(fit=FitBounds(copies_max=3, subjects_max=1))
    async with serving(limits=limits) as server:
        await fill(server, 5)
        answer = await server.get(f"{JSON}/fit")
        (one,) = answer["items"]
        assert (one["count"], one["limit"]["kind"], answer["omitted"]) == (3, "bound", 1)


async def test_text_json_and_page_tell_the_same_of_copies():
    async with serving() as server:
        await fill(server, 5, 2)
        told = await server.post(f"{JSON}/fit", {"objects": [wanted(2)]}, code=200)
        answer = msgspec.convert(told, FitAnswer)
        body = urlencode({"manifest": yaml.safe_dump(wanted(2))}).encode()
        posted = await server.raw("POST", f"{UI}/capacity", body, **FORM)
        assert posted.status_code == 200, posted.text
        root = read(posted.text)
        page = root.one("main").text
        cells = [[cell.text for cell in row.all("td")] for row in root.all("tr")]
        lines = "\n".join(text.fit_lines(answer))
        (one,) = answer.items
        assert text.head(one) in lines
        assert text.head(one) in page
        assert one.count == 3
        for place in one.nodes:
            assert f"{place.node} ({place.count})" in lines
            assert [place.node, str(place.count)] in cells
        for line in text.limit_lines(one):
            assert line.strip() in lines
            assert line.strip() in page
        everything = read((await server.raw("POST", f"{UI}/capacity", b"manifest=", **FORM)).text)
        shown = everything.one("main").text
        assert "ResourceClaimTemplate default/one: 7 more fit" in shown
        of_all = msgspec.convert(await server.get(f"{JSON}/fit", code=200), FitAnswer)
        assert of_all.together is not None
        assert of_all.together.count == 7
        for line in text.together_lines(of_all.together):
            assert line in list(text.fit_lines(of_all))
            assert line.strip() in shown


async def test_text_json_and_page_tell_the_same_of_capacity():
    limits = ApiLimits(capacity=CapacityBounds(at_once_max=32))
    async with serving(limits=limits) as server:
        await fill(server, 5, 2)
        told = await server.get(f"{JSON}/capacity")
        answer = msgspec.convert(told, CapacityCourse)
        assert not answer.missing
        (gpu,) = answer.present.classes
        assert (gpu.devices, gpu.free, gpu.largest, gpu.node) == (7, 7, 5, "node-1")
        lines = "\n".join(text.capacity_lines(answer))
        assert text.class_text(gpu) in lines
        root = read((await server.raw("GET", f"{UI}/capacity")).text)
        (row,) = root.all("tbody")[0].all("tr")
        cells = [cell.text for cell in row.all("td")]
        assert cells == ["gpu.example.com", "7", "7", "7", "5", "node-1"]
        rows = root.one("details").one("tbody").all("tr")
        assert len(rows) == len(answer.moments)
        columns = root.one("div", "picture").all("a")
        assert len(columns) == len(answer.moments)
        for moment, line, column in zip(answer.moments, rows, columns, strict=True):
            shown = moment.classes[0] if moment.classes else None
            assert str(moment.revision) in line.text
            if shown is not None:
                assert f"{shown.largest} of {shown.free}" in line.text
                assert f"has {shown.largest}, {shown.free} free" in column.text
                assert f"{shown.name} {shown.largest} of {shown.free}" in lines


async def test_moments_come_with_the_next_questions():
    limits = ApiLimits(capacity=CapacityBounds(moments_max=8, at_once_max=2))
    async with serving(limits=limits) as server:
        await fill(server, 2, 2, 2, 2)
        revision = (await server.get(JSON))["revision"]
        first = await server.get(f"{JSON}/capacity")
        assert (len(first["moments"]), first["moments"][-1]["revision"]) == (2, revision)
        assert first["missing"]
        missing = first["missing"]
        while missing:
            answer = await server.get(f"{JSON}/capacity")
            assert answer["missing"] < missing
            missing = answer["missing"]
        whole = [one["revision"] for one in answer["moments"]]
        assert whole == sorted(set(whole))
        assert 2 < len(whole) <= 8
        assert first["moments"][-1] == answer["moments"][-1]


async def test_empty_history_has_no_capacity_and_no_error():
    async with serving() as server:
        answer = await server.get(f"{JSON}/capacity")
        assert answer["moments"][-1]["classes"] == []
        assert "There is no device class" in (await server.raw("GET", f"{UI}/capacity")).text
