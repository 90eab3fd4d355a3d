"""The parts of a history, read from a store: outside inputs, or all writes as recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.analysis.minimise.material import Candidate, Material
from app.analysis.replay.inputs import Input
from app.analysis.replay.variants import Switches
from app.bootstrap import replays
from app.bootstrap.control_planes import replay_bounds
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import run_stores
from app.bootstrap.stores import Store, find_history, find_inside, memory_store
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.objects import profile as profiles
from app.domain.values.timestamps import Instant
from app.service import moments
from app.service.replays.deciding import replay as deciding
from app.service.replays.trials import Ran
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A history in parts; `name` is the name its user gave.

    `decided` holds the outside inputs, which the controllers here decide again. `recorded` holds
    all writes, to be used as they are. `events` is the number of events of the history, `last` the
    instant of the last one. `running` are the controllers that decide. `is_recording` is True for a
    recording of another control plane.
    """

    name: str
    info: HistoryInfo
    events: int
    last: Instant
    running: Sequence[str]
    decided: Material
    recorded: Material
    is_recording: bool = False

    def whole(self, material: Material) -> Candidate:
        """The candidate with every part."""
        return Candidate(kept=frozenset(range(len(material.steps))), until=self.last)


async def read(
    store: Store,
    settings: Settings,
    name: str,
    moment: str,
    profile: str | None,
    shown: str = "",
) -> Source:
    """The parts of a history up to a moment (empty: its end). Raises InputError.

    `shown` is the name its user gave, if that is not its name. The history is decided with the
    settings' gates and quirks and the profile, where they are given.
    """
    stored = await find_history(store, name)
    until = await find_inside(store, stored, moment, option=f"{name}@{moment}")
    stored = await moments.history_at(store.log, stored, until)
    chosen = await replays.with_settings(store, settings, stored, profile)
    engines = Engines()
    info = engines.settings_under(chosen, Switches(), frozenset())
    off = frozenset(info.settings["controllers"]["off"])
    running = [each for each in registry.NAMES if each not in off]
    bounds = replay_bounds(settings)
    recording = await deciding.recording_of(
        store.log, info, until=until, rules=engines.rules(info), running=running, bounds=bounds
    )
    events: list[Event] = []
    while page := await store.log.read(
        info.id,
        after=events[-1].revision if events else Revision(0),
        limit=bounds.page_max,
        until=until,
    ):
        events += page
    written = [event for event in events if event.is_about_object]
    if not written:
        raise InputError("the history has no event about an object", place=shown or name)
    inputs = _numbered(recording.inputs)
    uids = {each.event.uid for each in inputs}
    return Source(
        name=shown or name,
        info=_plain(info),
        events=len(events),
        last=Instant(max(event.stamp.time for event in events)),
        running=running,
        decided=Material(
            steps=inputs,
            made=[event for event in recording.made if event.uid in uids],
        ),
        recorded=Material(steps=_as_recorded(written), is_recorded=True),
        is_recording=stored.is_recorded,
    )


def _plain(info: HistoryInfo) -> HistoryInfo:
    """The history with the settings for a separate, smaller one; the profile in full."""
    settings = {name: value for name, value in info.settings.items() if name != "ownTime"}
    settings["profile"] = profiles.from_settings(settings).settings()["profile"]
    return msgspec.structs.replace(
        info,
        settings=settings,
        parent=None,
        parent_revision=Revision(0),
        beginning=None,
        is_fork=False,
    )


def _numbered(inputs: Sequence[Input]) -> list[Input]:
    return [replace(each, number=number) for number, each in enumerate(inputs)]


def _as_recorded(events: Sequence[Event]) -> list[Input]:
    """Every write, with the object before it."""
    objects: dict[ObjectKey, Event] = {}
    steps: list[Input] = []
    time = Instant(0)
    for event in events:
        last = objects.get(event.key)
        if last is not None and last.uid != event.uid:
            last = None
        time = Instant(max(time, event.stamp.time))
        steps.append(
            Input(
                event=event,
                before=None if last is None else last.object,
                time=time,
                author=event.stamp.actor.user,
                number=len(steps),
            )
        )
        if event.type is EventType.OBJECT_DELETED:
            objects.pop(event.key, None)
        else:
            objects[event.key] = event
    return steps


async def read_files(settings: Settings, paths: tuple[Path, ...], profile: str | None) -> Source:
    """The parts of a recording in files, read into memory. Raises InputError."""
    store = memory_store()
    name = await replays.load_files(store, settings, paths)
    shown = ", ".join(path.name or str(path) for path in paths)
    return await read(store, settings, name, "", profile, shown)


async def read_ran(settings: Settings, ran: Ran, name: str) -> Source:
    """The parts of a history that was run in this process."""
    return await read(await run_stores.stored(ran, name), settings, name, "", None)
