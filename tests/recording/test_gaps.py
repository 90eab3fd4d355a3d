"""A history names the gaps and doubts where something may be missing."""

import copy
import re
from dataclasses import replace

import anyio
import pytest

from app.adapters.clock import SystemClock
from app.api.server.limits import ApiLimits
from app.bootstrap.recording import recorders
from app.bootstrap.recording.recorders import ScreenGaps
from app.domain.errors import InputError
from app.domain.log import EventType, ObjectKey
from app.domain.values.timestamps import SECOND, Instant
from app.service.chronicles import Chronicles
from app.service.recording.following import gap
from app.service.recording.journal import GAPS_NAMED_MAX, NewGaps
from tests import draws
from tests.api.serving import CLAIMS, claim
from tests.patience import PATIENCE_SECONDS
from tests.recording.proxy import proxying
from tests.recording.recording import check_same, of_recorded_kinds, recording_of, state_of
from tests.recording.source import NODES, PODS, Writer, node, serving_source
from tests.recording.test_following import last_version
from tests.unit.analysis.test_kept_chronicles import shown
from tests.unit.service.test_stretches_of_chronicles import Reader


@draws.in_turn("ways")
async def test_compacted_changes_are_a_gap_and_what_exists_is_listed(tmp_path):
    async with serving_source(tmp_path, limits=ApiLimits(retained_revisions=15)) as source:
        writer = Writer(source, 7)
        await writer.write(20)
        recording = recording_of(source)
        async with recording.going():
            await writer.write(10)
            await recording.wait_for_version(await last_version(source))
        before = len(await recording.log())
        await writer.write(60)
        async with recording.going():
            await recording.wait_for(
                lambda events: {
                    event.key.resource
                    for event in events
                    if event.type is EventType.GAP_OBSERVED
                } >= {"pods", "nodes", "resourceclaims"}
            )  # fmt: skip
            await writer.write(5)
            await recording.wait_for_version(await last_version(source))
        events = await recording.log()
        gaps = check_same(await source.events(), events)
        assert {gap.key.resource for gap in gaps} >= {"pods", "nodes", "resourceclaims"}
        assert "the objects that exist then are listed" in gaps[0].object["message"]
        shown = {event.type for event in events[before:] if event.stamp.origin is not None}
        assert EventType.OBJECT_DELETED in shown
        codes = {(doubt.kind, doubt.code) for doubt in await recording.doubts()}
        assert ("resourceclaims.resource.k8s.io", "gap") in codes
        assert ("pods", "gap") in codes


async def test_server_that_ends_its_watches_with_410_and_keeps_the_changes_is_no_gap(tmp_path):
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 11)
        recording = recording_of(source)
        async with recording.going():
            await writer.write(10)
            await recording.wait_for_version(await last_version(source))
            await source.restart(is_told=True)
            await writer.write(10)
            await recording.wait_for_version(await last_version(source))
        assert not check_same(await source.events(), await recording.log())


async def test_history_says_of_its_gap_before_anything_else_is_known(tmp_path):
    """A reader between the gap and the next report never sees an answer without its doubt."""
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        async with recording.going():
            source.refusals["/pods"] = 403
            await source.restart()
            await recording.wait_for(
                lambda events: any(event.type is EventType.GAP_OBSERVED for event in events)
            )
            events = await recording.log()
            place = next(
                index for index, event in enumerate(events)
                if event.type is EventType.GAP_OBSERVED
            )  # fmt: skip
            assert any(event.type is EventType.HISTORY_IMPORTED for event in events[place:])
            assert "gap" in {doubt.code for doubt in await recording.doubts()}


async def test_denied_kind_is_named_and_recorded_once_it_is_allowed(tmp_path):
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 8)
        await writer.write(20)
        source.refusals["/pods"] = 403
        recording = recording_of(source)
        async with recording.going():
            await writer.write(10)
            await recording.wait_for_version(
                max(e.revision for e in await source.events() if e.key.resource != "pods")
            )
            assert not check_same(await source.events(), await recording.log(), without=["pods"])[
                1:
            ]
            (gap,) = await recording.gaps()
            assert gap[0] == "pods"
            assert "refused with 403; pods are not recorded until that is allowed" in gap[1]
            codes = {(doubt.kind, doubt.code) for doubt in await recording.doubts()}
            assert {("pods", "gap"), ("pods", "never_seen")} <= codes
            source.refusals.clear()
            async with source.client() as client:
                listed = await client.get(PODS)
            names = {pod["metadata"]["name"] for pod in listed.json()["items"]}
            await recording.wait_for(
                lambda events: names <= {e.key.name for e in events if e.key.resource == "pods"}
            )
        check_same(await source.events(), await recording.log())


async def test_answers_of_a_running_server_have_the_doubts_of_each_new_gap(tmp_path):
    """What is asked again and again says the same as what a server says that has just started."""

    async def said(chronicles):
        head = await recording.store.log.head((await recording.info()).id)
        runtime = Reader(recording.store.log, await recording.info(), head.revision, None, life=1)
        chronicle, doubts = await chronicles.of(runtime)
        assert chronicle.revision == head.revision
        return doubts, shown(chronicle)

    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        running = Chronicles(kept_max=1, events_max=10_000)
        for kind in ("", "nodes", "pods"):
            async with recording.going():
                if kind:
                    before = len(await recording.gaps())
                    source.refusals[f"/{kind}"] = 403
                    await source.restart()
                    await recording.wait_for(
                        lambda events, before=before: sum(
                            event.type is EventType.GAP_OBSERVED for event in events
                        ) > before
                    )  # fmt: skip
                    source.refusals.clear()
            assert await said(running) == await said(Chronicles(kept_max=1, events_max=10_000))
        doubts, _ = await said(running)
        assert {doubt.kind for doubt in doubts if doubt.code == "gap"} == {"nodes", "pods"}


async def test_kind_that_is_not_served_is_noted(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source, include=("widgets.example.com",))
        await recording.once()
        report = (await recording.log())[-1].object["report"]
        assert report["notes"] == ["not served by the cluster: widgets.example.com"]
        assert not await recording.gaps()


async def test_nothing_that_may_be_read_is_an_error_and_leaves_nothing(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        kinds = await source_kinds(recording)
        source.refusals |= {f"/{name.partition('.')[0]}": 403 for name in kinds}
        with pytest.raises(InputError, match="no kind of this cluster may be read"):
            await recording.once()
        assert await recording.store.log.histories() == []
        assert await recording.store.log.unfinished() == []


@pytest.mark.parametrize("is_refused", [True, False])
async def test_last_comparison_that_was_not_made_is_in_the_report(tmp_path, is_refused):
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 9)
        await writer.write(20)
        recording = recording_of(source, record_stop_seconds=2)
        async with recording.going():
            await writer.write(10)
            await recording.wait_for_version(await last_version(source))
            if is_refused:
                source.refusals["/pods"] = 410
            else:
                source.silent = frozenset({"/pods"})
        last = (await recording.log())[-1].object
        assert last["phase"] == "stopped"
        (note,) = last["report"]["notes"]
        assert note.startswith("stopped before the last comparison with the cluster was made")
        assert "REDRA_RECORD_STOP_SECONDS is 2" in note
        missed = note.rpartition(": ")[2].split(", ")
        assert "pods" in missed
        # What came before it was compared; one that is refused keeps nothing from being so.
        assert ("nodes" in missed) <= (not is_refused)


async def test_report_of_a_recorder_that_compared_everything_has_no_note(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        async with recording.going():
            await Writer(source, 10).write(10)
            await recording.wait_for_version(await last_version(source))
        assert (await recording.log())[-1].object["report"]["notes"] == []


async def source_kinds(recording):
    async with recording.opened() as opened:
        return opened.kinds


async def until(holds):
    with anyio.fail_after(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - a list and a count, not events
            await anyio.sleep(0.02)  # waits: for requests, and lines on the screen


async def test_comparisons_that_are_refused_are_said_once_while_watches_live(tmp_path, monkeypatch):
    monkeypatch.setattr(recorders, "_PROBLEMS_SECONDS", 0.02)
    async with serving_source(tmp_path) as source:
        await Writer(source, 9).write(5)
        recording = recording_of(source, record_audit_seconds=0.05)

        def said(text):
            return [note for note in recording.notes if text in note]

        async with recording.going():
            source.past = (403, "refused with 403")
            await until(lambda: said("comparisons with the cluster are refused: "))
            seen = source.past_count
            await until(lambda: source.past_count > 4 * seen)
            source.past = None
            await until(lambda: said("comparisons with the cluster are made again"))
        (note,) = said("are refused")
        assert "refused with 403" in note
        assert not await recording.gaps()


async def test_kind_whose_lists_expire_like_its_watches_is_named_until_it_is_recorded(
    tmp_path, monkeypatch
):
    """A server or a proxy may answer 410 to everything: nothing of the kind is recorded then."""
    monkeypatch.setattr(recorders, "_PROBLEMS_SECONDS", 0.02)
    async with serving_source(tmp_path) as source:
        await Writer(source, 9).write(5)
        recording = recording_of(source)

        def said(text):
            return [note for note in recording.notes if text in note]

        async with recording.going():
            source.refusals["/pods"] = 410
            await source.restart()
            await until(lambda: said("refused with 410"))
            assert not await recording.gaps()
            source.refusals.clear()
            await until(lambda: said("all kinds are recorded again"))
            await recording.wait_for_version(await last_version(source))
        assert [note.partition(": /")[0] for note in said("refused with 410")] == [
            "prod: pods",
            "prod: gap",
        ]
        assert [kind for kind, _ in await recording.gaps()] == ["pods"]


def new_gaps(*messages):
    gaps = NewGaps()
    for message in messages:
        gaps.note(gap("", ObjectKey("", "pods", "", ""), message, Instant(0)))
    return gaps


def test_gaps_that_follow_one_like_them_are_said_together():
    screen = ScreenGaps()
    assert screen.lines(new_gaps("expired at 1", "gone"), 0.0) == ["gap: expired at 1", "gap: gone"]
    assert screen.lines(new_gaps("expired at 2", "expired at 30"), 20.0) == []
    assert screen.lines(new_gaps("expired at 4"), 61.0) == [
        "gap, 3 more like it, the last: expired at 4"
    ]
    assert screen.lines(new_gaps("expired at 5", "gone"), 70.0) == ["gap: gone"]
    assert screen.rest() == ["gap, 1 more like it, the last: expired at 5"]
    assert screen.rest() == []
    assert screen.lines(new_gaps(), 131.0) == []
    assert screen.lines(new_gaps("expired at 6"), 200.0) == ["gap: expired at 6"]


def test_gaps_that_are_not_alike_are_named_up_to_a_bound():
    screen = ScreenGaps()
    letters = [chr(ord("a") + at) for at in range(GAPS_NAMED_MAX + 2)]
    lines = screen.lines(new_gaps(*letters, "a"), 0.0)
    assert lines[:-1] == [f"gap: {letter}" for letter in letters[:GAPS_NAMED_MAX]]
    assert lines[-1] == "2 more gaps; redra findings names all"
    assert screen.rest() == ["gap, 1 more like it, the last: a"]


class ShiftedClock(SystemClock):
    """A clock that is wrong."""

    def now(self):
        return super().now() - 3_600 * SECOND


async def test_clock_that_is_off_is_a_gap_and_times_are_the_servers(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        store = recording.store
        recording.store = replace(store, ports=replace(store.ports, clock=ShiftedClock()))
        await Writer(source, 9).write(10)
        async with recording.going():
            await Writer(source, 10).write(0)
            async with source.client() as client:
                await client.post(CLAIMS, json=claim("late"))
            await recording.wait_for_version(await last_version(source))
        (gap,) = [gap for gap in await recording.gaps() if gap[0] == "clocks"][:1]
        said = re.search(r"server's clock is ([0-9.]+) s ahead of .*to within ([0-9.]+) s", gap[1])
        offset, exactness = map(float, said.groups())
        # Both are printed with one digit; the bounds are compared in tenths of a second.
        assert round(10 * abs(offset - 3_600)) <= round(10 * exactness)
        assert exactness < 10
        happened = {event.key: event.stamp.time for event in await source.events()}
        for event in await recording.log():
            if event.is_about_object and event.stamp.origin.position == "watch":
                assert abs(event.stamp.time - happened[event.key]) < 10 * SECOND
        # It is about times: nothing is missing for it.
        assert not [doubt for doubt in await recording.doubts() if doubt.code == "gap"]


class FastClock(SystemClock):
    """A clock that is an hour ahead of the server's."""

    def now(self):
        return super().now() + 3_600 * SECOND


@draws.BY_DAY
@pytest.mark.parametrize(
    ("off", "way"),
    [(ShiftedClock, "ahead of"), (FastClock, "behind")],
    ids=["ahead", "behind"],
)
async def test_clock_that_stays_off_is_one_gap_over_restarts(tmp_path, off, way):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        right = recording.store

        async def offsets(clock):
            recording.store = replace(right, ports=replace(right.ports, clock=clock))
            async with recording.going():
                async with source.client() as client:
                    await client.post(CLAIMS, json=claim(f"claim-{len(seen)}"))
                await recording.wait_for_version(await last_version(source))
            return [said for kind, said in await recording.gaps() if kind == "clocks"]

        seen = []
        for clock in (off, off, SystemClock):
            seen.append(await offsets(clock()))
        assert [len(each) for each in seen] == [1, 1, 2]
        assert f" s {way} the clock" in seen[0][0]
        assert seen[-1][-1].endswith("agree again")


async def test_only_reads_reach_the_cluster(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source, include=("secrets",))
        async with recording.going():
            pass
        assert {method for method, _ in source.requests} == {"GET"}
        paths = " ".join(path for _, path in source.requests)
        assert "secrets" in paths
        assert "configmaps" not in paths


async def test_secrets_and_config_maps_are_not_even_asked_for(tmp_path):
    async with serving_source(tmp_path) as source:
        await recording_of(source).once()
        paths = " ".join(path for _, path in source.requests)
        assert "secrets" not in paths
        assert "configmaps" not in paths


async def test_watch_that_lost_a_change_is_noticed_at_the_next_that_does_not_follow(tmp_path):
    """A line that never came shows when its object is changed or deleted."""
    async with serving_source(tmp_path) as source, proxying(source) as proxy:
        recording = recording_of(source, kubeconfig=source.kubeconfig(port=proxy.port))
        proxy.lost_name = b"lost"
        async with recording.going(), source.client() as client:
            await client.post(NODES, json=node("lost"))
            await proxy.has_lost.wait()
            await client.post(NODES, json=node("seen"))
            await recording.wait_for_version(await last_version(source))
            await client.delete(f"{NODES}/lost")
            await recording.wait_for(
                lambda events: any(e.type is EventType.GAP_OBSERVED for e in events)
            )
        gaps = check_same(await source.events(), await recording.log())
        assert "a watch lost changes: nodes/lost was deleted" in gaps[0].object["message"]


async def test_recorder_that_stops_has_what_a_silent_watch_did_not_bring(tmp_path):
    """The connection is dead, which nothing shows for long; the other kinds go on."""
    async with serving_source(tmp_path) as source, proxying(source) as proxy:
        recording = recording_of(
            source, kubeconfig=source.kubeconfig(port=proxy.port), record_audit_seconds=600
        )
        async with recording.going(), source.client() as client:
            proxy.silent_name = b"unheard"
            await client.post(NODES, json=node("unheard"))
            await proxy.is_silent.wait()
            proxy.silent_name = b""
            await client.post(CLAIMS, json=claim("heard"))
        events = await recording.log()
        assert not check_same(await source.events(), events, may_be_late=True)
        assert "unheard" in {event.key.name for event in events}
        assert events[-1].object["report"]["notes"] == []


TOO_LARGE = 504, "Too large resource version: 900, current: 7"
FUTURE = 500, "etcdserver: mvcc: required revision is a future revision"
"""The answers to a list of a version that is yet to come: of the API server's cache, and etcd's."""


@draws.in_turn("ways")
@pytest.mark.parametrize("past", [None, FUTURE])
async def test_cluster_that_was_restored_from_a_backup_is_a_gap_of_each_kind(tmp_path, past):
    """Its resource versions are lower than before, and tell of other changes."""
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 12)
        await writer.write(20)
        await source.kill()
        backup = copy.deepcopy(source.store)
        await source.start()
        # Each refusal of a version to come takes the server three seconds.
        recording = recording_of(source, record_audit_seconds=0.5, record_retry_seconds_max=1)
        async with recording.going():
            await writer.write(30)
            await recording.wait_for_version(await last_version(source))
            await source.kill()
            source.store, source.past = backup, past
            await source.start()
            await Writer(source, 13, "restored").write(20)
            wanted = state_of(of_recorded_kinds(await source.events()))
            await recording.wait_for(lambda events: state_of(of_recorded_kinds(events)) == wanted)
            before = len(await recording.log())
            async with source.client() as client:
                await client.post(NODES, json=node("after"))
            await recording.wait_for(lambda events: events[-1].key.name == "after")
        kinds = {kind for kind, _ in await recording.gaps()}
        assert kinds >= {"pods", "nodes", "resourceclaims"}
        after = (await recording.log())[before:]
        assert not [event for event in after if "late" in getattr(event.stamp.origin, "losses", ())]


@draws.in_turn("ways")
async def test_list_that_expires_between_its_pages_begins_anew(tmp_path):
    """The token of the next page is answered by 410 while the objects are listed after a gap."""
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 14)
        recording = recording_of(source, record_page_max=2, record_audit_seconds=0.5)
        async with recording.going(), source.client() as client:
            await writer.write(20)
            await recording.wait_for_version(await last_version(source))
            source.expired_pages = 3
            source.refusals["/nodes"] = 403
            await source.restart()
            for number in range(6):
                await client.post(NODES, json=node(f"many{number}"))
            await recording.wait_for(
                lambda events: any(event.type is EventType.GAP_OBSERVED for event in events)
            )
            source.refusals.clear()
            wanted = state_of(of_recorded_kinds(await source.events()))
            await recording.wait_for(lambda events: state_of(of_recorded_kinds(events)) == wanted)
            assert not source.expired_pages
        gaps = await recording.gaps()
        assert {kind for kind, _ in gaps} == {"nodes"}
        check_same(await source.events(), await recording.log())


async def test_snapshot_whose_list_expires_between_its_pages_names_the_kind(tmp_path):
    async with serving_source(tmp_path) as source:
        async with source.client() as client:
            for number in range(3):
                await client.post(NODES, json=node(f"many{number}"))
        source.expired_pages = 1
        recording = recording_of(source, record_page_max=2)
        await recording.once()
        assert [note for note in recording.notes if "whole" in note] == [
            "prod: the first list is not whole: nodes: /api/v1/nodes: refused with 410"
        ]
        assert await recording.gaps() == [
            ("nodes", "/api/v1/nodes: refused with 410; the first list of nodes is not whole")
        ]
        assert {(doubt.kind, doubt.code) for doubt in await recording.doubts()} >= {
            ("nodes", "gap")
        }


@draws.in_turn("ways")
@pytest.mark.parametrize("past", [TOO_LARGE, FUTURE])
async def test_server_whose_cache_is_behind_the_others_is_no_gap(tmp_path, past):
    """The cluster did not go back: its newest version is not lower than before."""
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 14)
        recording = recording_of(source, record_audit_seconds=0.1)
        async with recording.going():
            await writer.write(10)
            await recording.wait_for_version(await last_version(source))
            source.past = past
            with anyio.fail_after(PATIENCE_SECONDS):
                while source.past_count < 20:  # noqa: ASYNC110 requests tell nobody
                    await anyio.sleep(0.02)  # waits: for comparisons, which leave no trace
            await writer.write(10)
            await recording.wait_for_version(await last_version(source))
        assert not check_same(await source.events(), await recording.log())
