"""Forks: their settings and time, the edits in them, and what verification and bundles say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from app.adapters.history.formats.bundle import BundleReader, BundleWriter
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.memory import MemoryLog, MemoryStore, MemoryViewStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.bootstrap import stores
from app.bootstrap.minimising import sources
from app.bootstrap.rules import rules_of
from app.domain.errors import AlreadyExists, HistoryBroken, InputError, Rejected, RevisionTooLarge
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.event import GENESIS
from app.domain.objects import profile as profiles
from app.domain.objects.profile import RULES_GATE
from app.domain.objects.write.commands import DeleteObject
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from app.service import copying, exporting
from app.service.cluster_clock import ClusterClock
from app.service.forking import ForkRequest, ForkSwitches
from app.service.histories import Histories
from app.service.replays import integrity
from app.service.replays.integrity import IntegrityCheck
from app.service.runtime import RuntimeBounds
from app.settings import Settings
from tests.cluster import T0, Cluster
from tests.unit.service.builders import ALICE, START, config_map, namespace
from tests.virtual_clock import VirtualClock

LATER = Instant(START + 86_400 * SECOND)


@dataclass(slots=True)
class World:
    store: MemoryStore
    log: MemoryLog
    clock: VirtualClock
    histories: Histories

    async def fork(
        self, name: str, moment: str = "", *edits: Edit, source: str = "cluster", **switches: object
    ) -> HistoryInfo:
        wanted = ForkRequest(switches=ForkSwitches(**switches), edits=edits)
        made = await self.histories.fork(source, name, moment, wanted=wanted, actor=ALICE)
        return made.info

    async def events(self, info: HistoryInfo) -> list[Event]:
        return await self.log.read(info.id, after=Revision(0), limit=1_000)

    async def names(self) -> list[str]:
        assert await self.log.unfinished() == []
        return [info.name for info in await self.log.histories()]

    async def problems(self, info: HistoryInfo, limit: int = 1_000) -> tuple[str, ...]:
        check = IntegrityCheck(info)
        for row in await self.log.read_stored(info.id, after=Revision(0), limit=limit):
            check.take(row)
        await integrity.check_end(check, self.log)
        return check.result().problems


@asynccontextmanager
async def world(**settings: object) -> AsyncIterator[World]:
    """A history `cluster` of six events, the last one a config map that was just written."""
    store, wake_up, clock = MemoryStore(), MemoryWakeUp(), VirtualClock(START)
    log = MemoryLog(store, wake_up.grown)
    histories = Histories(
        ports=RuntimePorts(
            log=log,
            wake_up=wake_up,
            clock=clock,
            uids=DerivedUids(7),
            views=MemoryViewStore({}),
        ),
        rules=rules_of,
        bounds=RuntimeBounds(poll_seconds=60.0),
        past_views_max=4,
        objects_max=1_000,
    )
    async with histories.running():
        runtime = await histories.create("cluster", settings={"profile": "1.36", **settings})
        await runtime.submit(namespace("default"), actor=ALICE)
        for name in ("a", "b", "c", "d", "e"):
            clock.advance_to(Instant(clock.now() + SECOND))
            await runtime.submit(config_map(name), actor=ALICE)
        clock.advance_to(LATER)
        yield World(store, log, clock, histories)


def manifest(name: str, **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }


async def test_settings_of_a_fork_are_its_parents_but_for_what_is_switched() -> None:
    async with world(recorded=True, quirks={"q3": False}) as here:
        info = await here.fork("fork", gates={"DRAConsumableCapacity": True}, quirks={"q4": False})
        assert not info.is_recorded
        assert info.settings == {
            "profile": "1.36",
            "gates": {"DRAConsumableCapacity": True},
            "quirks": {"q3": False, "q4": False},
            "ownTime": True,
        }
        (forked,) = (await here.events(info))[6:]
        assert forked.type is EventType.HISTORY_FORKED
        assert forked.object["settings"] == info.settings


@pytest.mark.parametrize(
    ("moment", "after"),
    [("4", 3), (4, 4.0), (4.25, 4.25), (4.999999, 4.999999), (5, 5), (3600, 3600), ("", 5)],
)
async def test_fork_begins_at_the_instant_that_is_named(moment: str | float, after: float) -> None:
    """The cluster has an event in each second; then nothing happens for a day."""
    async with world() as here:
        begun = Instant(START + int(after * SECOND))
        named = moment
        if not isinstance(moment, str):
            named = timestamps.micro_text(Instant(START + int(moment * SECOND)))
        info = await here.fork("fork", str(named), DeleteEdit(name="configmap/a"))
        *before, forked, edited = await here.events(info)
        assert (forked.stamp.time, edited.stamp.time) == (begun, begun)
        assert before[-1].stamp.time <= begun
        assert await here.problems(info) == ()


@pytest.mark.parametrize(
    ("moment", "switches"),
    [
        ("0", {}),
        ("7", {}),
        ("2020-01-01T00:00:00Z", {}),
        ("2031-01-01T00:00:00Z", {}),
        ("", {"profile": "1.20"}),
        ("", {"gates": {"Nope": True}}),
        ("", {"gates": {"DynamicResourceAllocation": False}}),
        ("", {"quirks": {"q99": True}}),
    ],
)
async def test_fork_that_cannot_be_meant_leaves_nothing(
    moment: str, switches: dict[str, object]
) -> None:
    async with world() as here:
        with pytest.raises((InputError, Rejected)):
            await here.fork("fork", moment, **switches)
        assert await here.names() == ["cluster"]


async def test_instant_after_the_end_is_inside_only_while_a_cluster_lives() -> None:
    """Of a recording nothing is known after its end; a live cluster stood still until now."""
    text = timestamps.micro_text(LATER)
    async with world() as here:
        assert (await here.fork("fork", text)).parent_revision == 6
    async with world(recorded=True) as here:
        with pytest.raises(RevisionTooLarge, match=r"history 'cluster' ends at .*, before"):
            await here.fork("fork", text)
        assert await here.names() == ["cluster"]


@pytest.mark.parametrize(
    ("settings", "switches", "gate", "note"),
    [
        ({"recorded": True}, {}, True, "is on in it, because of r"),
        ({"recorded": True}, {"gates": {RULES_GATE: False}}, False, "so r has no effect"),
        ({"recorded": True}, {"gates": {RULES_GATE: True}}, True, ""),
        ({"recorded": True}, {"profile": "1.37"}, True, ""),
        ({}, {}, False, "so r has no effect"),
    ],
)
async def test_fork_says_what_becomes_of_an_applied_rule(
    settings: dict[str, object], switches: dict[str, object], gate: bool, note: str
) -> None:
    """A recording does not tell whether its cluster served rules; a live history does."""
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "k", "effect": "NoExecute"}},
    }
    async with world(**settings) as here:
        wanted = ForkRequest(switches=ForkSwitches(**switches), edits=(Apply(tree=rule),))
        made = await here.histories.fork("cluster", "fork", "", wanted=wanted, actor=ALICE)
        assert profiles.from_settings(made.info.settings).enabled(RULES_GATE) is gate
        assert bool(made.notes) is bool(note)
        assert note in "".join(made.notes)


@pytest.mark.parametrize(
    ("name", "moment", "said"),
    [
        ("e", "5", "does not exist at that moment; it is created at revision 6, 20"),
        ("a", "", "does not exist at that moment; it was deleted at revision 7, 20"),
        ("a", "1", "does not exist at that moment; it is created at revision 2, 20"),
        ("none", "5", "does not exist at that moment$"),
    ],
)
async def test_object_that_is_missing_at_the_moment_is_said_to_exist_at_another(
    name: str, moment: str, said: str
) -> None:
    async with world() as here:
        runtime = await here.histories.open("cluster")
        key = ObjectKey("", "configmaps", "default", "a")
        await runtime.submit(DeleteObject(key=key, version="v1"), actor=ALICE)
        with pytest.raises(InputError, match=said):
            await here.fork("fork", moment, DeleteEdit(name=f"configmap/{name}"))


async def test_edits_are_made_in_the_fork_alone() -> None:
    async with world() as here:
        info = await here.fork(
            "fork",
            "5",
            DeleteEdit(name="configmap/a"),
            PatchEdit(name="cm/default/b", body={"data": {"a": "2"}}),
            Apply(tree=manifest("c", a="3")),
            Apply(tree=manifest("new", a="4")),
        )
        views = await here.histories.at("fork", (await here.log.head(info.id)).revision)
        shown = {
            key.name: views.objects.get(key)["data"] for key in views.objects.keys("", "configmaps")
        }
        assert shown == {"b": {"a": "2"}, "c": {"a": "3"}, "d": {"a": "1"}, "new": {"a": "4"}}
        assert await here.problems(info) == ()
        parent = await here.histories.info("cluster")
        assert (await here.log.head(parent.id)).revision == 6
        assert {event.stamp.actor for event in (await here.events(info))[5:]} == {ALICE}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (DeleteEdit(name="configmap/none"), "does not exist at that moment"),
        (DeleteEdit(name="configmap/other/a"), "but in namespace default"),
        (DeleteEdit(name="configmap"), "write it as configmap/NAMESPACE/NAME"),
        (DeleteEdit(name="node/a/b"), "write it as node/NAME"),
        (DeleteEdit(name="nothing/a"), "there is no kind 'nothing'"),
        (Apply(tree={"kind": "ConfigMap"}, place="f.yaml:1"), "it has no apiVersion"),
        (Apply(tree={"apiVersion": "v1", "kind": "ConfigMap"}, place="f.yaml:1"), "metadata.name"),
        (Apply(tree=manifest("c") | {"extra": 1}), "extra"),
        (PatchEdit(name="cm/b", body={"data": {"a": 2}}), "data"),
    ],
)
async def test_edit_that_is_refused_leaves_no_fork(edit: Edit, said: str) -> None:
    async with world() as here:
        with pytest.raises((InputError, Rejected), match=said):
            await here.fork("fork", "", DeleteEdit(name="configmap/a"), edit)
        assert await here.names() == ["cluster"]


async def test_fork_is_opened_from_a_snapshot_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world() as here:
        await (await here.histories.open("cluster")).save_snapshot()
        await here.fork("fork")
        await here.fork("again", source="fork")
        await here.fork("early", "3")
        read: list[Revision] = []
        plain = here.log.read

        async def noted(*given: object, **named: object) -> list[Event]:
            events = await plain(*given, **named)
            read.extend(event.revision for event in events)
            return events

        monkeypatch.setattr(here.log, "read", noted)
        for name, first in (("fork", 6), ("again", 6), ("early", 1)):
            read.clear()
            runtime = await here.histories.open(name)
            # The first event is read for the settings, that of the snapshot for its hash.
            read.remove(Revision(1))
            assert min(read) == first
            shown = {key.name for key in runtime.views.objects.keys("", "configmaps")}
            assert shown == ({"a", "b"} if name == "early" else {"a", "b", "c", "d", "e"})


async def test_time_of_a_fork_goes_on_from_its_moment_while_it_is_served() -> None:
    async with world() as here:
        await here.fork("fork", "4")
        runtime = await here.histories.open("fork")
        assert runtime.clock.now() == START + 3 * SECOND
        here.clock.advance_to(Instant(here.clock.now() + 10 * SECOND))
        written = await runtime.submit(config_map("new"), actor=ALICE)
        assert written.event is not None
        assert written.event.stamp.time == START + 13 * SECOND
        await here.histories.close("fork")
        here.clock.advance_to(Instant(here.clock.now() + 3_600 * SECOND))
        again = await here.histories.open("fork")
        assert again.clock.now() == START + 13 * SECOND
        assert again.notes() == []


def test_own_time_never_falls() -> None:
    clock = VirtualClock(LATER)
    own = ClusterClock(clock, is_own=True)
    own.observe(START)
    clock.advance_to(Instant(clock.now() + 5 * SECOND))
    own.observe(Instant(START + SECOND))
    assert own.now() == START + 5 * SECOND
    own.observe(Instant(START + 60 * SECOND))
    assert (own.now(), own.ahead) == (START + 60 * SECOND, 0)


async def test_chain_of_a_fork_covers_its_settings() -> None:
    async with world() as here:
        info = await here.fork("fork", "4", Apply(tree=manifest("new")))
        again = await here.fork("again", "", source="fork", quirks={"q3": False})
        assert await here.problems(info) == ()
        assert await here.problems(again) == ()
        for one in (info, again):
            for change in ({"settings": {"profile": "1.37"}}, {"seed": one.seed + 1}):
                changed = msgspec.structs.replace(one, **change)
                for limit in (1_000, one.parent_revision + 1):
                    (problem,) = await here.problems(changed, limit)
                    assert "are not those of its first event" in problem
        assert info.beginning is not None
        other = msgspec.structs.replace(info.beginning, settings={"profile": "1.35"})
        (problem,) = await here.problems(msgspec.structs.replace(info, beginning=other))
        assert "it does not follow from the settings" in problem


async def test_fork_whose_settings_were_changed_is_not_served() -> None:
    async with world() as here:
        for name, source in (("fork", "cluster"), ("again", "fork")):
            info = await here.fork(name, source=source)
            stored = here.store.history(info.id)
            stored.info = msgspec.structs.replace(info, settings={"profile": "1.37"})
            with pytest.raises(HistoryBroken, match="are not those of its first event"):
                await here.histories.open(name)
            stored.info = info
        assert (await here.histories.open("cluster")).head.revision == 6


async def test_name_is_taken_by_somebody_else_meanwhile() -> None:
    async with world() as here:
        await here.fork("fork")
        with pytest.raises(AlreadyExists):
            await here.fork("fork")
        assert await here.names() == ["cluster", "fork"]


async def test_copy_and_bundle_of_a_fork_stand_alone(tmp_path: Path) -> None:
    async with world() as here:
        info = await here.fork("fork", "4", Apply(tree=manifest("new")))
        head = await here.log.head(info.id)
        copied = await copying.copy_history(here.log, info, "copy", until=head.revision)
        path = tmp_path / "fork.zip"
        await exporting.export_history(here.log, info, BundleWriter(path), program="", file="")
        read = await exporting.import_bundle(
            here.log, BundleReader(path, DEFAULT_LIMITS), name="read", created=LATER
        )
        await here.log.delete_history(info.id, at=LATER, by="me")
        for one in (copied, read.history):
            assert not one.is_fork
            assert one.settings == info.settings
            assert await here.log.head(one.id) == head
            assert await here.problems(one) == ()
            changed = msgspec.structs.replace(one, settings={})
            assert await here.problems(changed) != ()


async def test_copy_and_bundle_from_before_a_fork_have_the_settings_of_then(
    tmp_path: Path,
) -> None:
    """No later fork concerns them: they end with the events of the first history, or of a fork."""
    async with world() as here:
        first = await here.fork("first", "4", Apply(tree=manifest("new")), profile="1.35")
        info = await here.fork("second", "", source="first", profile="1.34")
        everything = (await here.log.head(info.id)).revision
        whole = await copying.copy_history(here.log, info, "whole", until=everything)
        for source in (info, whole):
            for until, profile in ((3, "1.36"), (6, "1.35"), (everything, "1.34")):
                name, path = f"{source.name}-{until}", tmp_path / f"{source.name}-{until}.zip"
                copied = await copying.copy_history(here.log, source, name, until=Revision(until))
                await exporting.export_history(
                    here.log, source, BundleWriter(path), program="", file="", until=Revision(until)
                )
                read = await exporting.import_bundle(
                    here.log, BundleReader(path, DEFAULT_LIMITS), name=f"b-{name}", created=LATER
                )
                for one in (copied, read.history):
                    assert one.settings["profile"] == profile
                    assert (await here.log.head(one.id)).revision == until
                    assert await here.problems(one) == ()
        assert first.settings["profile"] == "1.35"


async def test_copy_and_bundle_end_with_a_whole_write_of_a_controller(tmp_path: Path) -> None:
    """They go on by themselves: a decision without its effects would be verified as it stands."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n0")
    cluster.slice("n0", 2)
    cluster.template()
    cluster.pod("a", template="gpu")
    events = cluster.settle().line.events
    log = MemoryLog(MemoryStore())
    info = await log.create_history(
        "own", seed=1, settings=cluster.profile.settings(), created=T0, hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=events)
    begins = [each.stamp.observed in (0, each.revision - 1) for each in events]
    begins.append(True)
    within = 0
    for until in range(1, len(events) + 1):
        end = begins.index(True, until)
        within += end != until
        copied = await copying.copy_history(log, info, f"c{until}", until=Revision(until))
        assert (await log.head(copied.id)).revision == copied.parent_revision == end
        path = tmp_path / f"{until}.zip"
        await exporting.export_history(
            log, info, BundleWriter(path), program="", file="", until=Revision(until)
        )
        read = await exporting.import_bundle(
            log, BundleReader(path, DEFAULT_LIMITS), name=f"b{until}", created=LATER
        )
        assert await log.head(read.history.id) == await log.head(copied.id)
    assert within >= 5, "of the placement alone there are as many"


async def test_history_is_minimised_with_the_settings_of_the_moment() -> None:
    async with world() as here:
        info = await here.fork("fork", "", profile="1.34")
        store = stores.memory_store()
        store = replace(store, ports=replace(store.ports, log=here.log))
        for moment, profile in (("6", "1.36"), ("", "1.34")):
            source = await sources.read(store, Settings(), info.name, moment, None)
            assert source.info.settings["profile"] == profile
