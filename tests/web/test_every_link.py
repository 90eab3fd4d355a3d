"""A walk over the pages of a history: each link, form and anchor leads where it says.

The walk begins on the landing page and goes on by links that the pages themselves show. A part of
them is followed with each run, another one each day; pages of a shape that was not seen go first.
"""

import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urldefrag, urlencode, urljoin, urlsplit

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.log import EventType, ObjectKey
from tests import draws
from tests.api.serving import pod, serving
from tests.imports import import_once
from tests.prepared_data import RECORDING
from tests.shared_data import shared_path
from tests.web.planted import SLICES, note_fact, orphan, plant, slice_of
from tests.web.reading import read, ready

PAGES_MAX = 200 if draws.WHOLE else 15
OF_A_SHAPE_MAX = 4
SOURCES = {
    "maintenance": lambda: RECORDING,
    "e-taints": lambda: shared_path("histories", "e-taints"),
}
MOMENT = re.compile("@[^/]+")
FILE = "/report"
"""The file to take away is no page: its links lead within itself."""
ANSWERS = "/redra/v1/"
DECIDED_AGAIN = ("/rehearsal", "/again")
"""Pages whose forms make redra decide a whole history again."""
CHOSEN = ("kind", "by")
"""Parameters with one value of few, each of which makes another page."""


@dataclass
class Walk:
    """The pages that were seen, and what is wrong with them."""

    server: object
    chance: random.Random
    waiting: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    seen: Counter = field(default_factory=Counter)
    known: set = field(default_factory=set)
    ids: dict[str, set] = field(default_factory=dict)
    anchors: list = field(default_factory=list)
    wrong: list = field(default_factory=list)

    async def go(self, start):
        """Follow links from a page on until there are none left, or enough were followed."""
        self._note("", start)
        for _ in range(PAGES_MAX):
            if (step := self._next()) is None:
                break
            await self._visit(*step)
        for page, target, anchor in self.anchors:
            if target in self.ids and anchor not in self.ids[target]:
                self.wrong.append(f"{page}: no part #{anchor} in {target}")

    def _next(self):
        shapes = [one for one, steps in self.waiting.items() if steps]
        if not shapes:
            return None
        fewest = min(self.seen[one] for one in shapes)
        if fewest >= OF_A_SHAPE_MAX:
            return None
        shape = self.chance.choice([one for one in shapes if self.seen[one] == fewest])
        self.seen[shape] += 1
        steps = self.waiting[shape]
        return steps.pop(self.chance.randrange(len(steps)))

    async def _visit(self, page, url):
        answer = await ready(lambda: self.server.raw("GET", url))
        if answer.status_code == 303:
            self._note(page, urljoin(url, answer.headers["location"]))
            return
        if answer.status_code != 200:
            self.wrong.append(f"{page}: {answer.status_code} for {url}")
            return
        if "html" not in answer.headers["content-type"] or urlsplit(url).path.endswith(FILE):
            return
        root = read(answer.text)
        ids = Counter(node.attributes["id"] for node in root if "id" in node.attributes)
        self.ids[url] = {*ids}
        self.wrong += [f"{url}: {count} parts #{one}" for one, count in ids.items() if count > 1]
        self.wrong += [f"{url}: {fault}" for fault in faults(root)]
        for node in root:
            self._follow(url, node)

    def _follow(self, url, node):
        for name in ("href", "src"):
            if (link := node.attributes.get(name)) is not None:
                target, anchor = urldefrag(urljoin(url, link))
                if anchor:
                    self.anchors.append((url, target, unquote(anchor)))
                self._note(url, target)
        # A field that has to be filled in keeps the browser from sending the form.
        is_form = node.tag == "form" and node.attributes.get("method", "get") == "get"
        if is_form and not any(is_missing(one) for one in node):
            query = urlencode(list(fields(node)))
            self._note(url, f"{urljoin(url, node.attributes['action'])}?{query}")

    def _note(self, page, url):
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            self.wrong.append(f"{page}: leads to another site, {url}")
        elif parts.query and parts.path.endswith(DECIDED_AGAIN):
            return
        elif url not in self.known:
            self.known.add(url)
            query = sorted(
                f"{name}={value if name in CHOSEN else bool(value)}"
                for name, value in parse_qsl(parts.query, keep_blank_values=True)
            )
            path = "answers" if parts.path.startswith(ANSWERS) else MOMENT.sub("@", parts.path)
            self.waiting["&".join((path, *query))].append((page, url))


def fields(form):
    """What a browser sends of a form as it stands."""
    for one in form:
        name = one.attributes.get("name")
        if not name:
            continue
        if one.tag in ("input", "textarea"):
            yield name, one.attributes.get("value", "")
        elif one.tag == "select":
            options = one.all("option")
            chosen = [each for each in options if "selected" in each.attributes] or options[:1]
            yield from ((name, each.attributes.get("value", each.text)) for each in chosen)


def is_missing(field_):
    return "required" in field_.attributes and not field_.attributes.get("value")


def faults(root):
    """The parts of a page that a reader without a mouse, or without eyes, does not get at."""
    labels = {node.attributes["for"] for node in root.all("label") if "for" in node.attributes}
    within = {id(one) for label in root.all("label") for one in label}
    for node in root:
        given, what = node.attributes, f"{node.tag} {node.attributes}"
        if "aria-hidden" in given:
            continue
        if node.tag in ("a", "button", "summary") and not (node.text or "aria-label" in given):
            yield f"nothing is said by {what}"
        is_scrolled = "scroll" in given.get("class", "").split()
        if is_scrolled and not {"tabindex", "aria-label"} <= given.keys():
            yield f"no keyboard scrolls {what}"
        if node.tag == "a" and "href" not in given:
            yield f"no keyboard gets to {what}"
        if int(given.get("tabindex", "0")) > 0:
            yield f"out of the order of the page: {what}"
        is_field = node.tag in ("input", "select", "textarea") and given.get("type") != "hidden"
        is_labelled = id(node) in within or given.get("id") in labels or "aria-label" in given
        if is_field and not is_labelled:
            yield f"no label says what {what} is for"


async def recorded(source):
    """A store with the recording of a cluster as its only history."""
    store = MemoryStore()
    await import_once(MemoryLog(store), [SOURCES[source]()], name="default")
    return store


async def walked(server):
    walk = Walk(server, random.Random(draws.DAY))
    await walk.go("/ui/h/default/")
    await walk.go("/ui/")
    assert len(walk.seen) >= PAGES_MAX / 2
    return sorted(walk.wrong)


@draws.in_turn("sources")
@pytest.mark.parametrize("source", SOURCES)
async def test_every_link_of_a_recording_leads_somewhere(source):
    async with serving(store=await recorded(source)) as server:
        assert await walked(server) == []


@draws.in_turn("sources")
async def test_every_link_of_a_live_history_leads_somewhere():
    async with serving() as server:
        await plant(server, draws.DAY)
        assert await walked(server) == []


async def test_lane_of_a_device_that_no_slice_publishes_leads_somewhere():
    """Its claim is reserved for a pod that nobody has seen."""
    async with serving() as server:
        await orphan(server, "orphan-0")
        page = "/ui/h/default/lanes"
        shown = read((await server.raw("GET", page)).text)
        targets = {urljoin(page, each.attributes["href"]) for each in shown.all("a")
                   if "d-orphan-0" in each.attributes.get("href", "")}  # fmt: skip
        assert targets
        assert {(await server.raw("GET", target)).status_code for target in targets} == {200}


NOT_STORED = {
    "of a later moment": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p"},
    "of a namespace": {"apiVersion": "v1", "kind": "Namespace", "namespace": "default",
                       "name": "nowhere"},
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_STORED)
async def test_warning_leads_to_no_object_that_was_not_stored_by_then(case):
    about = NOT_STORED[case]
    async with serving() as server:
        event = {"metadata": {"name": "e"}, "involvedObject": about, "type": "Warning",
                 "reason": "Failed", "message": "too early"}  # fmt: skip
        await server.post("/api/v1/namespaces/default/events", event)
        await server.post("/api/v1/namespaces/default/pods", pod("p"))
        page = read((await server.raw("GET", "/ui/h/default/timeline")).text)
        rows = {
            row.one("td", data_label="What").text: row.one("td", data_label="Object")
            for row in page.one("tbody").all("tr")
        }
        assert about["name"] in rows["Warning"].text
        assert rows["Warning"].links == []
        (link,) = rows["PodCreated"].links
        assert (await server.raw("GET", link)).status_code == 200


async def test_object_of_a_kind_that_is_not_known_has_a_page():
    key = ObjectKey("flow.test", "levels", "", "exempt")
    tree = {"apiVersion": "flow.test/v1", "kind": "Level", "metadata": {"name": "exempt"}}
    async with serving() as server:
        await note_fact(server, type=EventType.OBJECT_CREATED.value, key=key, body=tree)
        (link,) = (
            read((await server.raw("GET", "/ui/h/default/find?q=exempt")).text)
            .one("main")
            .links[:1]
        )
        page = await server.raw("GET", link)
        assert page.status_code == 200, page.text
        assert "exempt" in read(page.text).one("h1").text


SLICE = "kind=resourceslices.resource.k8s.io&name=slice-whole"


async def test_map_tells_that_a_node_is_not_registered():
    async with serving() as server:
        await server.post(SLICES, slice_of("whole"))
        page = read((await server.raw("GET", "/ui/h/default/map")).text).one("main")
        assert page.one("h2").text == "node-1 no such node"
        assert page.one("h2").links == []
        answer = await server.raw("GET", f"/ui/h/default/object?{SLICE}")
        shown = read(answer.text).one("ul", "relations")
        assert (shown.text, shown.links) == ("node node-1 not there", [])
        node = {"metadata": {"name": "node-1"}}
        await server.post("/api/v1/nodes", node)
        page = read((await server.raw("GET", "/ui/h/default/map")).text).one("main")
        assert page.one("h2").text == "node node-1"
        assert len(page.one("h2").links) == 1
