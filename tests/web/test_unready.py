"""Pages that take longer than a request waits say so, go on, and are there for the next request."""

import re

import anyio
import anyio.lowlevel
import pytest
import yaml

from app.analysis.capacity.sampling import CapacityBounds
from app.analysis.findings import findings as collected
from app.analysis.findings.report import Finding, FindingKind, Findings, Severity
from app.api.server.limits import ApiLimits, WaitBounds
from app.domain.errors import InputError, LogUnavailable
from app.domain.values.timestamps import SECOND, Instant
from app.service import past_views
from app.service.answering.errands import Errands
from app.service.replays.scanning import HistoryScan
from app.web.frame import Frame
from app.web.links import Links
from app.web.pages import findings
from tests import draws
from tests.api.serving import CONFIG_MAPS, config_map, pod, serving
from tests.api.test_readers import PATHS, RBAC, filled, headers
from tests.api.test_redra_capacity import fill
from tests.patience import PATIENCE_SECONDS
from tests.virtual_clock import VirtualClock
from tests.web.browsing import browsing, needs_browser
from tests.web.planted import PODS
from tests.web.reading import read
from tests.web.test_more_pages import RULE

UI, JSON = "/ui/h/default", "/redra/v1/histories/default"
AT_ONCE = ApiLimits(waits=WaitBounds(seconds=0))
"""No request waits for its page."""


async def complete(server, path, **given):
    """The page when it is complete, and the pages that were answered before."""
    before = []
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            answer = await server.raw("GET", path, **given)
            root = read(answer.text)
            if not [link for link in root.all("a") if "data-again" in link.attributes]:
                return answer, before
            before.append(answer)
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("part", ["", "lanes", "timeline?decisions=true", "find?q=m-1", "pace"])
async def test_page_that_is_not_ready_says_so_and_leads_to_itself(part):
    async with serving(limits=AT_ONCE) as server, serving() as patient:
        for one in (server, patient):
            await one.post(CONFIG_MAPS, config_map("m-1"))
        answer, before = await complete(server, f"{UI}/{part}")
        assert before[0].status_code == 202
        root = read(before[0].text)
        assert root.one("h1").text, "the landing page has a name, too"
        assert "Not ready yet" in root.one("p", role="status").text
        assert not root.all("table") + root.all("ol") + root.all("p", "nothing")
        assert [link for link in root.links if link.startswith(UI)][-1] == f"{UI}/{part}"
        assert answer.status_code == 200
        whole = read((await patient.raw("GET", f"{UI}/{part}")).text)
        assert read(answer.text).one("h1").text == whole.one("h1").text


async def test_page_of_a_history_that_is_being_opened_says_so(monkeypatch):
    """Folding a long history takes a minute; a browser showed nothing meanwhile."""
    limits = ApiLimits(waits=WaitBounds(opening_seconds=0))
    async with serving(limits=limits) as server:
        await server.post(CONFIG_MAPS, config_map("m-1"))
        await server.histories.close("default")
        start, may_go_on = server.histories._start, anyio.Event()

        async def slow(info):
            await may_go_on.wait()
            return await start(info)

        monkeypatch.setattr(server.histories, "_start", slow)
        path = f"{UI}/timeline?kind=PodScheduled"
        first = await server.raw("GET", path)
        root = read(first.text)
        assert first.status_code == 202
        assert "redra is opening this history of 3 events" in root.one("p", role="status").text
        assert [link for link in root.links if link.startswith(UI)][-1] == path
        assert root.one("noscript").one("meta").attributes["http-equiv"] == "refresh"
        may_go_on.set()
        answer, _ = await complete(server, path)
        assert answer.status_code == 200
        nobody = await server.raw("GET", "/ui/h/nobody/")
        assert (nobody.status_code, "data-again" in nobody.text) in ((404, False), (202, True))


async def test_refusal_of_a_page_that_was_not_ready_is_told_to_the_next_request():
    async with serving(limits=AT_ONCE) as server:
        answer, before = await complete(server, f"{UI}/why?kind=pod&name=nobody")
        assert before
        assert answer.status_code == 404
        assert "nobody" in read(answer.text).one("p", "problem").text


async def test_page_that_was_begun_for_one_user_is_not_given_to_another():
    async with filled(limits=AT_ONCE) as server:
        path = "/ui/h/one/find?q=p-other"
        assert (await server.raw("GET", path, **headers("root"))).status_code == 202
        await anyio.wait_all_tasks_blocked()
        first = await server.raw("GET", path, **headers("dan"))
        await anyio.wait_all_tasks_blocked()
        second = await server.raw("GET", path, **headers("dan"))
        whole = await server.raw("GET", path, **headers("root"))
        # In the source of a page, names have places for line breaks.
        assert (whole.status_code, "other/p-other" in read(whole.text).text) == (200, True)
        for answer in (first, second):
            assert "other/p-other" not in read(answer.text).text


@pytest.mark.parametrize("part", ["", "lanes", "why?kind=pod&namespace=other&name=p-other"])
async def test_page_that_was_begun_with_a_right_is_not_given_without_it(part):
    async with filled(limits=AT_ONCE) as server:
        path, cat, root = f"/ui/h/one/{part}", headers("cat"), headers("root")
        assert (await server.raw("GET", path, **cat)).status_code == 202
        await anyio.wait_all_tasks_blocked()
        role = {"metadata": {"name": "cat-clusterrole"}, "rules": [PATHS]}
        await server.put(f"/h/one{RBAC}/clusterroles/cat-clusterrole", role, **root)
        answer, _ = await complete(server, path, **cat)
        assert answer.status_code == 403
        assert "decided-summary" not in answer.text


async def test_page_that_nobody_came_for_is_made_anew():
    waits = WaitBounds(seconds=0, kept_seconds=0)
    async with serving(limits=ApiLimits(waits=waits)) as server:
        first = await server.raw("GET", f"{UI}/find?q=late")
        await anyio.wait_all_tasks_blocked()
        await server.post(CONFIG_MAPS, config_map("late"))
        second = await server.raw("GET", f"{UI}/find?q=late")
        assert (first.status_code, second.status_code) == (202, 202)


async def test_scan_that_goes_on_shows_nothing_as_an_answer_and_then_what_it_found():
    rule = yaml.safe_load(RULE)
    del rule["spec"]["deviceSelector"]
    # A page is waited for, half as long the scan in it: the answer has the known part.
    async with serving(limits=ApiLimits(waits=WaitBounds(seconds=1e-9))) as server:
        await server.post("/apis/resource.k8s.io/v1beta2/devicetaintrules", rule)
        answer, before = await complete(server, f"{UI}/scan")
        assert before
        for one in before:
            assert "none of the known defects" not in one.text
            assert "Not complete yet" in one.text or "Not ready yet" in one.text
        items = (await server.get(f"{JSON}/scan"))["items"]
        titles = [each.one("h2").text for each in read(answer.text).all("li", "finding")]
        assert titles == [item["title"] for item in items] != []


async def test_landing_page_shows_known_defects_and_begins_no_search_for_each_moment_passed():
    rule = yaml.safe_load(RULE)
    del rule["spec"]["deviceSelector"]
    async with serving() as server:
        await server.post("/apis/resource.k8s.io/v1beta2/devicetaintrules", rule)
        answer = await server.get(f"{JSON}/findings")
        defects = answer["knownDefects"]
        assert defects
        assert answer["knownDefectsNote"] == ""
        for one in defects:
            severity = one.pop("severity")
            assert severity == ("error" if one["kind"] == "defect" else "warning")
        assert defects == (await server.get(f"{JSON}/scan"))["items"]
        page = read((await server.raw("GET", UI + "/")).text)
        titles = [one.text for one in page.all("h2")]
        assert {one["title"] for one in defects} <= {*titles}
        lead = page.one("p", "lead").text
        assert f"{len(defects)} known defect" in lead
        # The summary counts what is shown, whichever search it comes from.
        shown = [one.text for one in page.all("p", "severity")]
        assert all(f"{shown.count(one)} {one}" in lead for one in shown)
        await server.post(CONFIG_MAPS, config_map("later"))
        past = f"/ui/h/default@{answer['revision']}"
        says = "known defects were not searched for at this moment"
        assert says in read((await server.raw("GET", past + "/")).text).text
        await server.raw("GET", past + "/scan")
        after = read((await server.raw("GET", past + "/")).text)
        assert says not in after.text
        assert {one["title"] for one in defects} <= {one.text for one in after.all("h2")}


async def test_landing_page_begins_no_long_search():
    rule = yaml.safe_load(RULE)
    del rule["spec"]["deviceSelector"]
    async with serving(limits=ApiLimits(scan_at_once_events_max=1)) as server:
        await server.post("/apis/resource.k8s.io/v1beta2/devicetaintrules", rule)
        says = "known defects were not searched for in all "
        assert says in read((await server.raw("GET", UI + "/")).text).text
        titles = {one["title"] for one in (await server.get(f"{JSON}/scan"))["items"]}
        page = read((await server.raw("GET", UI + "/")).text)
        assert says not in page.text
        assert titles <= {one.text for one in page.all("h2")}


async def test_landing_page_says_why_known_defects_are_not_searched_for():
    async with serving(limits=ApiLimits(scan_events_max=0)) as server:
        await server.post(CONFIG_MAPS, config_map("m"))
        note = (await server.get(f"{JSON}/findings"))["knownDefectsNote"]
        assert note.startswith("known defects were not searched for: ")
        assert note.endswith(" are more than 0: use redra scan")
        assert note in read((await server.raw("GET", UI + "/")).text).text


async def test_scan_follows_its_history_and_does_not_begin_again(monkeypatch):
    rule = yaml.safe_load(RULE)
    del rule["spec"]["deviceSelector"]
    async with serving() as server:
        log, starts = server.histories._ports.log, []
        assert (await server.get(f"{JSON}/scan"))["items"] == []
        plain = log.read

        async def noted(history, **given):
            starts.append(given["after"])
            return await plain(history, **given)

        before = (await server.get(JSON))["revision"]
        await server.post("/apis/resource.k8s.io/v1beta2/devicetaintrules", rule)
        monkeypatch.setattr(type(log), "read", lambda _, history, **given: noted(history, **given))
        (item,) = (await server.get(f"{JSON}/scan"))["items"]
        assert item["revision"] > before
        assert min(starts) == before
        past = (await server.get(f"{JSON}/scan?at={before}"))["items"]
        assert past == []


async def test_scan_that_is_asked_for_again_and_again_holds_up_no_other_answer(monkeypatch):
    gate, plain = anyio.Event(), HistoryScan.read

    async def gated(self, until, now=None):
        await gate.wait()
        return await plain(self, until, now)

    monkeypatch.setattr(HistoryScan, "read", gated)
    waits = WaitBounds(seconds=1e-9)
    async with serving(limits=ApiLimits(waits=waits, explanations_at_once_max=2)) as server:
        runtime = await server.histories.open("default")
        await server.post(PODS, pod("p"))
        for number in range(8):
            await server.raw("GET", f"{UI}/scan")
            await anyio.wait_all_tasks_blocked()
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        assert runtime.errands.count == 1
        with anyio.fail_after(PATIENCE_SECONDS):
            assert (await server.get(f"{JSON}/why?kind=pod&name=p"))["subject"]
        gate.set()
        await complete(server, f"{UI}/scan")
        assert runtime.errands.count == 0


async def test_capacity_over_time_completes_without_further_questions_of_a_form():
    bounds = CapacityBounds(moments_max=8, at_once_max=1)
    limits = ApiLimits(waits=WaitBounds(seconds=0), capacity=bounds)
    async with serving(limits=limits) as server:
        await fill(server, 2, 2, 2, 2)
        answer, before = await complete(server, f"{UI}/capacity")
        assert before
        rows = read(answer.text).one("details").one("tbody").all("tr")
        assert len(rows) == len((await server.get(f"{JSON}/capacity"))["moments"]) > 2


async def test_long_history_is_read_on_in_the_background():
    limits = ApiLimits(chronicle_events_max=2)
    async with serving(limits=limits) as server:
        for number in range(30):
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        first = await server.raw("GET", f"{UI}/timeline")
        assert "Not complete yet" in first.text
        answer, _ = await complete(server, f"{UI}/timeline")
        revision = (await server.get(JSON))["revision"]
        assert str(revision) in read(answer.text).one("tbody").all("tr")[0].text
        examined = (await server.get(f"{JSON}/timeline?limit=1"))["examined"]
        assert examined == revision


async def test_answers_from_a_part_of_the_log_say_so_in_the_same_words():
    limits = ApiLimits(chronicle_events_max=2)
    async with serving(limits=limits) as server:
        for number in range(30):
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        read_so_far = r"the log was read up to revision \d+ of \d+; what only later events"
        for part in ("timeline", "lanes", "pace", "findings?wait=0"):
            note = (await server.get(f"{JSON}/{part}"))["note"]
            assert re.match(f"not complete: {read_so_far}", note), part
        page = await server.raw("GET", f"{UI}/timeline")
        assert re.search(read_so_far, read(page.text).one("main").text)
        await complete(server, f"{UI}/timeline")
        for part in ("timeline", "lanes", "pace", "findings"):
            assert (await server.get(f"{JSON}/{part}"))["note"] == "", part


@pytest.mark.parametrize(("examined", "words"), [(9, "3 in all"), (5, "3 so far")])
def test_count_of_a_history_that_is_not_read_yet_is_so_far(examined, words):
    finding = Finding(
        kind=FindingKind.EVICTED_PODS, severity=Severity.WARNING, text="3 pods were evicted",
        count=3, present=0, first=2, last=4,
    )  # fmt: skip
    answer = Findings(history="h", revision=9, examined=examined, items=(finding,))
    frame = Frame(links=Links(history="h"), part="findings", revision=9, head=9)
    assert words in read(findings.page(frame, answer, "").decode()).one("main").text


async def test_page_waits_for_its_turn_while_all_errands_are_busy():
    gate = anyio.Event()
    async with serving(limits=AT_ONCE) as server:
        errands = (await server.histories.open("default")).errands
        number = 0
        while errands.begin(number, gate.wait) is not None:
            number += 1
        waiting = await server.raw("GET", f"{UI}/find?q=m-1")
        assert (waiting.status_code, errands.count) == (202, number)
        said = read(waiting.text).one("p", role="status").text
        assert f"redra works out {number} other answers about this history" in said
        gate.set()
        answer, _ = await complete(server, f"{UI}/find?q=m-1")
        assert answer.status_code == 200


async def test_turn_comes_with_the_end_of_an_errand():
    errands, gate = Errands(1), anyio.Event()
    async with anyio.create_task_group() as errands.tasks:
        errands.begin("first", gate.wait)
        assert errands.are_all_busy
        assert not await errands.wait_turn(0)
        gate.set()
        assert await errands.wait_turn(PATIENCE_SECONDS)
        assert await errands.begin("second", anyio.lowlevel.checkpoint).wait_ended()


async def test_errand_runs_once_and_its_error_reaches_all_who_wait():
    errands, runs, gate = Errands(1), [], anyio.Event()

    async def work():
        runs.append(1)
        await gate.wait()
        raise InputError("no")

    assert errands.begin("early", work) is None
    async with anyio.create_task_group() as tasks:
        errands.tasks = tasks
        first, second = errands.begin("one", work), errands.begin("one", work)
        assert first is second
        assert errands.begin("two", work) is None
        assert not await first.wait_ended(0)
        gate.set()
        assert await first.wait_ended()
        with pytest.raises(InputError, match="no"):
            first.outcome()
        assert (len(runs), errands.count) == (1, 0)


async def test_errand_ends_with_its_history():
    errands = Errands(1)
    async with anyio.create_task_group() as tasks:
        errands.tasks = tasks
        errand = errands.begin("one", anyio.sleep_forever)
        errands.end()
        tasks.cancel_scope.cancel()
    assert errand.is_ended
    with pytest.raises(LogUnavailable, match="closed"):
        errand.outcome()


@draws.in_turn("ways")
@needs_browser
@pytest.mark.slow
def test_page_in_a_browser_completes_by_itself():
    with browsing(4, limits=AT_ONCE) as story, story.page() as page:
        page.goto(f"{story.url}/ui/h/default/why?kind=pod&name=waits-0")
        page.locator("ul.reasons").wait_for()
        page.get_by_role("link", name="Timeline").click()
        page.locator("tbody tr").first.wait_for()
        assert not page.locator("a[data-again]").count()


async def test_waiting_pods_have_their_causes_before_the_log_is_read_to_them():
    """The pods show them: an early answer said that no scheduler had said why."""
    async with serving(limits=ApiLimits(chronicle_events_max=2)) as server:
        for number in range(9):
            await server.post(PODS, pod(f"early-{number}"))
        for name, node in (("waits", ""), ("new", ""), ("runs", "node-1")):
            await server.post(PODS, pod(name, **({"nodeName": node} if node else {})))
        message = "0/2 nodes are available: 2 Insufficient cpu. preemption: no"
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [{**refused, "message": message}]}}
        await server.patch(f"{PODS}/waits/status", status)
        texts = []
        for _ in range(2):
            answer = await server.get(f"{JSON}/findings?wait=0")
            assert bool(answer["note"]) == (answer["examined"] < answer["revision"])
            texts.append(sorted(item["text"] for item in answer["items"]))
        answer = await server.get(f"{JSON}/findings")
        assert not answer["note"]
        first, last = texts[0], sorted(item["text"] for item in answer["items"])
        assert first == [
            "1 pod waits: Insufficient cpu",
            "10 pods wait: the log is not read far enough to say why",
        ]
        assert last == [
            "1 pod waits: Insufficient cpu",
            "10 pods wait: no scheduler has said why",
        ]


EMPTY = {
    "": "Nothing is wrong here.",
    "timeline?kind=PodCreated": "No event matches the filter.",
    "lanes?name=nobody": "No pod, claim or node matches the filter.",
    "pace?name=nobody": "No pod matches the filter.",
}


@pytest.mark.parametrize("part", EMPTY)
async def test_nothing_is_not_said_before_all_has_been_read(part):
    async with serving(limits=ApiLimits(chronicle_events_max=2)) as server:
        for number in range(30):
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        first = await server.raw("GET", f"{UI}/{part}")
        assert "data-again" in first.text
        assert EMPTY[part] not in first.text
        answer, _ = await complete(server, f"{UI}/{part}")
        assert EMPTY[part] in answer.text


async def test_other_requests_run_while_a_past_moment_is_folded(monkeypatch):
    monkeypatch.setattr(past_views, "TURN", 2)
    async with serving() as server:
        for number in range(20):
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        turns, revision = 0, (await server.get(JSON))["revision"]
        async with anyio.create_task_group() as tasks:

            async def count():
                nonlocal turns
                while True:
                    turns += 1
                    await anyio.lowlevel.checkpoint()

            tasks.start_soon(count)
            await server.histories.at("default", revision - 1)
            tasks.cancel_scope.cancel()
        assert turns > 8


LENGTHY = "rehearsal?to=1.36"


async def test_rehearsal_is_not_waited_for_and_comes_with_a_later_request():
    async with serving(limits=AT_ONCE) as server, serving() as patient:
        for one in (server, patient):
            await one.post(CONFIG_MAPS, config_map("m-1"))
        answer, before = await complete(server, f"{UI}/{LENGTHY}")
        assert before[0].status_code == 202
        root = read(before[0].text)
        assert root.one("h1").text == "Rehearse an upgrade"
        (again,) = [link for link in root.all("a") if "data-again" in link.attributes]
        assert again.attributes["href"] == f"{UI}/{LENGTHY}"
        whole = read((await patient.raw("GET", f"{UI}/{LENGTHY}")).text).one("main")
        assert (answer.status_code, read(answer.text).one("main").text) == (200, whole.text)


@draws.in_turn("ways")
async def test_rehearsals_take_turns_and_leave_room_for_other_pages(monkeypatch):
    gate, begun = anyio.Event(), []
    async with serving(limits=AT_ONCE) as server:
        await server.post(CONFIG_MAPS, config_map("m-1"))
        api = server.app._redra.rehearsals
        report = api.report

        async def held(request, *more):
            begun.append(request.parameter("to"))
            await gate.wait()
            return await report(request, *more)

        monkeypatch.setattr(api, "report", held)
        asked = [f"{UI}/rehearsal?to={release}" for release in ("1.34", "1.35", "1.36")]
        for path in asked:
            assert (await server.raw("GET", path)).status_code == 202
            await anyio.wait_all_tasks_blocked()
        assert begun == ["1.34"], "the others wait for their turn without a place of their own"
        last = await server.raw("GET", asked[2])
        turn = "redra works out 1 other answer; this page has its turn after 1 that waits longer"
        assert turn in read(last.text).text
        for part in ("", "timeline", "rehearsal", "compare"):
            answer, _ = await complete(server, f"{UI}/{part}")
            assert answer.status_code == 200, "forms and other pages do not wait"
        gate.set()
        for path in asked:
            answer, _ = await complete(server, path)
            assert answer.status_code == 200
        assert begun == ["1.34", "1.35", "1.36"]


async def test_other_requests_run_between_the_inputs_of_a_rehearsal():
    async with serving() as server:
        for number in range(40):
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        turns = 0
        async with anyio.create_task_group() as tasks:

            async def count():
                nonlocal turns
                while True:
                    turns += 1
                    await anyio.lowlevel.checkpoint()

            tasks.start_soon(count)
            await server.get(f"{JSON}/rehearsal?to=1.36")
            tasks.cancel_scope.cancel()
        assert turns > 2 * 40, "the inputs run in two worlds, and each of them gives a turn"


async def test_findings_that_took_long_are_kept_as_long(monkeypatch):
    """On a busy machine, a page that was not ready in time was begun anew after each answer."""
    clock = VirtualClock(Instant(1_800_000_000 * SECOND))
    begun = []

    def of_a_busy_machine(*given, **more):
        begun.append(clock.now())
        clock.advance_to(Instant(clock.now() + 5 * SECOND))
        return collect_in_steps(*given, **more)

    collect_in_steps = collected.collect_in_steps
    monkeypatch.setattr(collected, "collect_in_steps", of_a_busy_machine)
    async with serving(clock=clock) as server:
        await server.post(PODS, pod("w"))

        async def times(*, after=0):
            clock.advance_to(Instant(clock.now() + after * SECOND))
            before = len(begun)
            await complete(server, f"{UI}/")
            return len(begun) - before

        assert await times() == 1
        assert await times(after=4) == 0
        assert await times(after=2) == 1, "an answer must not last longer than it took"
        assert await times(after=4) == 0
        await server.post(PODS, pod("v"))
        assert await times() == 1, "an event came"
