"""The whole timeline as JSON lines: bounded in memory, whole or known to have broken off."""

import json

import anyio
import pytest

from app.adapters.memory import MemoryLog
from app.api.redra import entries as api_entries
from app.api.server.limits import ApiLimits
from app.service.histories import Histories
from tests.api.serving import CLAIMS, claim, serving

ENTRIES = "/redra/v1/histories/default/entries"
SMALL = ApiLimits(log_page_max=3, timelines_at_once_max=1)


async def _with_claims(server, count=20):
    for number in range(count):
        await server.post(CLAIMS, claim(f"c{number}"))


async def _lines(server, query=""):
    answer = await server.raw("GET", f"{ENTRIES}{query}")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_lines_begin_with_doubts_and_end_with_their_count():
    async with serving(limits=SMALL) as server:
        await _with_claims(server)
        head, *entries, end = await _lines(server)
        assert head == {"doubts": []}
        assert [entry["name"] for entry in entries[-20:]] == [f"c{n}" for n in range(20)]
        revisions = [entry["revision"] for entry in entries]
        assert revisions == sorted(set(revisions))
        times = {"began": entries[0]["time"], "ended": entries[-1]["time"]}
        assert end == {"count": len(entries), "revision": revisions[-1], **times}


@pytest.mark.parametrize("last", [1, 5, 20, 1000])
async def test_last_entries_are_those_of_the_whole_answer(last):
    async with serving(limits=SMALL) as server:
        await _with_claims(server)
        _, *entries, end = await _lines(server)
        _, *newest, newest_end = await _lines(server, f"?last={last}")
        assert newest == entries[-last:]
        assert newest_end == {**end, "count": len(newest)}


async def test_window_of_a_namespace_is_the_same_from_the_objects_before_it(monkeypatch):
    """Whether the log before it is folded, or the objects of that moment are looked at."""
    looks = []
    look = Histories.at

    async def noted(self, name, moment):
        looks.append(moment)
        return await look(self, name, moment)

    monkeypatch.setattr(Histories, "at", noted)
    async with serving(limits=SMALL) as server:
        await _with_claims(server)
        _, *entries, end = await _lines(server, "?namespace=default")
        first = entries[-5]["revision"]
        answers = []
        for count in (1_000, 0):
            monkeypatch.setattr(api_entries, "_EVENTS_FOR_AN_OBJECT", count)
            answers.append(await _lines(server, f"?namespace=default&since={first}"))
            assert bool(looks) == (count == 0)
        assert answers[0] == answers[1]
        assert answers[1][1:] == [*entries[-5:], {**end, "count": 5}]
        assert set(looks) == {first - 1}


async def test_name_that_occurs_late_is_answered_and_an_unknown_one_refused_before_any_line():
    async with serving(limits=SMALL) as server:
        await _with_claims(server)
        _, *entries, end = await _lines(server, "?name=c19")
        assert [entry["name"] for entry in entries] == ["c19"]
        assert end["count"] == 1
        answer = await server.raw("GET", f"{ENTRIES}?name=c91")
        assert answer.status_code == 400
        assert "'c91' does not occur" in answer.json()["message"]


async def test_answer_is_read_as_the_client_takes_it(monkeypatch):
    """A page of the log for each chunk: a client that stops taking stops the reading."""
    reads = []
    read = MemoryLog.read

    async def counted(self, history, **options):
        reads.append(options["after"])
        return await read(self, history, **options)

    async with serving(limits=SMALL) as server:
        await _with_claims(server)
        monkeypatch.setattr(MemoryLog, "read", counted)
        goes_on, chunks = anyio.Event(), []

        async def send(message):
            chunks.append(message.get("body", b""))
            if b'"name":"c2"' in chunks[-1]:
                await goes_on.wait()

        async def receive():
            await anyio.sleep_forever()

        path, _, query = ENTRIES.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [],
        }
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.app, scope, receive, send)
            await anyio.wait_all_tasks_blocked()
            assert b'"name":"c2"' in chunks[-1]
            before = len(reads)
            await anyio.wait_all_tasks_blocked()
            assert len(reads) == before
            # Who takes the lines slowly has no turn meanwhile, although there is only one.
            assert (await _lines(server))[-1]["count"] > 0
            goes_on.set()
            await anyio.wait_all_tasks_blocked()
            assert b'"name":"c19"' in b"".join(chunks)
            tasks.cancel_scope.cancel()


async def test_turn_is_free_again_when_its_client_has_gone():
    async with serving(limits=SMALL) as server:
        await _with_claims(server)
        for _ in range(3):
            async with server.watch(f"{ENTRIES}?follow=true") as following:
                while "count" not in await following.line():
                    pass
                await server.post(CLAIMS, {**claim(), "metadata": {"generateName": "late-"}})
                assert (await following.line())["name"].startswith("late-")
        assert (await _lines(server))[-1]["count"] > 0


async def test_class_belongs_to_the_namespaces_whose_claims_name_it():
    async with serving(limits=SMALL) as server:
        path = "/apis/resource.k8s.io/v1/deviceclasses"
        made = await server.post(path, {"metadata": {"name": "gpu.example.com"}})
        await server.post(path, {"metadata": {"name": "other.example.com"}})
        await server.post(CLAIMS, claim())
        made["spec"]["extendedResourceName"] = "example.com/gpu"
        await server.put(f"{path}/gpu.example.com", made)
        _, *entries, _ = await _lines(server, "?namespace=default")
        assert [entry["kind"] for entry in entries if entry["resource"] == "deviceclasses"] == [
            "ClassChanged"
        ]


async def test_object_of_another_name_than_the_wanted_one_is_refused():
    async with serving(limits=SMALL) as server:
        await _with_claims(server, 2)
        assert len(await _lines(server, "?object=claim/c0&name=c0")) == 3
        answer = await server.raw("GET", f"{ENTRIES}?object=claim/c0&name=c1")
        assert answer.status_code == 400
        assert "another name" in answer.json()["message"]
