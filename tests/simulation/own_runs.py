"""Runs of a bundle with a piece less, for checks of what `redra minimise` writes.

It imports nothing of the search. The bundle is imported like any recording, its inputs from outside
are told from the writes of its controllers as for a decide replay, and the engine decides those
that stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
import msgspec

from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.replay.inputs import Input
from app.analysis.replay.recording import Recording
from app.analysis.replay.report import DecideReport
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Switches, Variant
from app.analysis.replay.writers import Writers
from app.analysis.verify.invariants.placements import Switches as RuleSwitches
from app.analysis.views import LiveViews
from app.bootstrap import replays
from app.bootstrap.engines import Engines
from app.bootstrap.stores import Store, find_history, memory_store
from app.domain.controllers import registry
from app.domain.log import Draft, Event, EventType, HistoryInfo, ObjectKey, Revision, chain
from app.domain.log.chain import canonical_json
from app.domain.log.event import Head
from app.domain.objects import profile as profiles
from app.domain.objects import registry as kinds
from app.domain.values.timestamps import Instant
from app.service import exporting
from app.service.replays.deciding import replay as deciding
from app.service.replays.deciding.run import Run
from app.service.replays.replaying import ReplayBounds
from app.service.replays.verifying import switches_of
from app.settings import Settings
from projections.objects import ObjectsProjection

Tree = dict[str, Any]

ENGINES = Engines()


@dataclass(frozen=True, kw_only=True)
class OwnRun:
    """Inputs with the settings that decide them; with `is_recorded` they are taken as they are."""

    info: HistoryInfo
    inputs: Sequence[Input]
    made: Sequence[Event]
    last: Instant
    is_recorded: bool

    @cached_property
    def events(self) -> Sequence[Event]:
        """The events of the run."""
        return _sealed(self.info, self.inputs) if self.is_recorded else self._decided()

    @property
    def switches(self) -> RuleSwitches:
        """The switches of its release that matter to the invariants."""
        profile = profiles.from_settings(self.info.settings)
        options = registry.options_from(self.info.settings)
        return switches_of(profile, registry.allocator_quirks_of(profile, options))

    def under(self, switches: Switches) -> "OwnRun":
        """The same inputs under other switches, up to the last event: a bundle ends there."""
        last = self.events[-1].stamp.time if self.events else self.last
        info = ENGINES.settings_under(self.info, switches, frozenset())
        return replace(self, info=info, last=last)

    def without_controller(self, name: str) -> "OwnRun":
        """The same inputs, and one controller does not run."""
        return replace(self, info=ENGINES.settings_under(self.info, Switches(), frozenset((name,))))

    def cut(self, key: ObjectKey, part: "Part") -> "OwnRun | None":
        """The run without a part of one object; None where the API would refuse the rest."""
        inputs = [_cut(step, part) if step.event.key == key else step for step in self.inputs]
        for step, whole in zip(inputs, self.inputs, strict=True):
            if step is not whole and not self._problems(step) <= self._problems(whole):
                return None
        return replace(self, inputs=inputs)

    def _problems(self, step: Input) -> frozenset[str]:
        kind = kinds.find(step.event.key.group, step.event.key.resource)
        if kind is None or step.event.type is EventType.OBJECT_DELETED:
            return frozenset()
        rules = ENGINES.rules(self.info)
        context = rules.context(ObjectsProjection(), step.time)
        tree = dict(step.event.object)
        problems = rules.validate_create(kind, tree, context)
        before = step.before
        if before is not None and step.event.type is EventType.OBJECT_UPDATED:
            problems += rules.validate_update(kind, tree, dict(before), "", context)
            if tree.get("status") != before.get("status"):
                problems += rules.validate_update(kind, tree, dict(before), "status", context)
        if step.event.stamp.verb == "baseline" and "status" in tree:
            bare = {name: value for name, value in tree.items() if name != "status"}
            problems += rules.validate_update(kind, tree, bare, "status", context)
        return frozenset(map(str, problems))

    def _decided(self) -> Sequence[Event]:
        rules = ENGINES.rules(self.info)
        recording = Recording(Writers(()), LiveViews(rules.profile), {}, Lacks(()), rules.schemas)
        recording.inputs = list(self.inputs)
        recording.made = list(self.made)
        listed = [each.time for each in self.inputs if each.event.stamp.verb == "baseline"]
        if listed:
            recording.starts = dict.fromkeys(registry.NAMES, Instant(max(listed) + 1))
        run = Run(
            recording,
            Variant(is_paced=False),
            rules=rules,
            controllers=ENGINES.controllers(self.info),
            uids=ENGINES.uids(self.info),
            pace=None,
            keep_events=True,
        )
        # Nothing is compared with this trace, and reading facts takes a third of the run.
        run.trace.read = lambda _event, _before: ()
        run.timeline.head = Head(hash=chain.genesis_of(self.info))
        for step in run.inputs():
            run.take(step)
        run.finish(self.last)
        return run.timeline.events


class OwnRuns:
    """The runs of a bundle: as a whole, or with fewer of its inputs.

    `controllers` are those that run.
    """

    def __init__(self, path: Path, *, is_recorded: bool = False) -> None:
        self.whole, self.controllers = anyio.run(_read, path, is_recorded)

    def run(self, kept: Sequence[int]) -> OwnRun:
        """The run of the inputs with these numbers."""
        inputs = [self.whole.inputs[number] for number in sorted(kept)]
        return replace(self.whole, inputs=inputs)


async def _read(path: Path, is_recorded: bool) -> tuple[OwnRun, Sequence[str]]:
    store, settings = memory_store(), Settings()
    name = await replays.load_files(store, settings, (path,))
    stored = await find_history(store, name)
    asked = await replays.with_settings(store, settings, stored, None)
    info = ENGINES.settings_under(asked, Switches(), frozenset())
    head = await store.log.head(info.id)
    events = await store.log.read(info.id, after=Revision(0), limit=head.revision)
    running = [each for each in registry.NAMES if each not in info.settings["controllers"]["off"]]
    recording = await deciding.recording_of(
        store.log,
        info,
        until=head.revision,
        rules=ENGINES.rules(info),
        running=() if is_recorded else running,
        bounds=ReplayBounds(),
    )
    uids = {each.event.uid for each in recording.inputs}
    steps = _as_recorded(events) if is_recorded else recording.inputs
    settings_of_it = {name: value for name, value in info.settings.items() if name != "ownTime"}
    if is_recorded:
        settings_of_it["recorded"] = True
    whole = OwnRun(
        info=msgspec.structs.replace(info, settings=settings_of_it, created=steps[0].time),
        inputs=steps,
        made=[event for event in recording.made if event.uid in uids],
        last=Instant(max(event.stamp.time for event in events)),
        is_recorded=is_recorded,
    )
    return whole, () if is_recorded else running


def _as_recorded(events: Sequence[Event]) -> list[Input]:
    steps: list[Input] = []
    last: dict[tuple[ObjectKey, str], Event] = {}
    for event in events:
        if event.is_about_object:
            before = last.get((event.key, event.uid))
            steps.append(
                Input(
                    event=event,
                    before=None if before is None else before.object,
                    time=event.stamp.time,
                    author=event.stamp.actor.user,
                    number=len(steps),
                )
            )
            last[event.key, event.uid] = event
    return steps


def _sealed(info: HistoryInfo, steps: Sequence[Input]) -> list[Event]:
    """The steps as the events of a chain of their own; the first line of an object makes it."""
    head, events, there = chain.genesis_of(info), list[Event](), set[ObjectKey]()
    for step in steps:
        event, tree = step.event, dict(step.event.object)
        if "metadata" in tree:
            tree["metadata"] = dict(tree["metadata"])
        kind = event.type
        if kind is EventType.OBJECT_UPDATED and event.key not in there:
            kind = EventType.OBJECT_CREATED
        (there.discard if kind is EventType.OBJECT_DELETED else there.add)(event.key)
        stamp = msgspec.structs.replace(event.stamp, time=step.time, cause=0, observed=0)
        draft = Draft(type=kind, key=event.key, uid=event.uid, tree=tree, stamp=stamp)
        events.append(chain.seal(draft, Revision(len(events) + 1), head))
        head = events[-1].hash
    return events


Part = tuple[str, ...]
"""The way to a part of an object: names of fields, and items as `=` with their name or content."""

_NAMES = ("name", "type", "key", "uid", "request", "driver", "device")


def parts_of(tree: Any, way: Part = ()) -> Iterator[Part]:
    """Every field and item of an object but those that tell which object it is.

    An allocation without its time is that of another release.
    """
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if (*way, name) == ("status", "allocation", "allocationTimestamp"):
                continue
            if way == ("metadata",) and name not in ("labels", "annotations"):
                continue
            if way or name not in ("apiVersion", "kind", "metadata"):
                yield (*way, name)
            yield from parts_of(value, (*way, name))
    elif isinstance(tree, list):
        for item in tree:
            yield (*way, _item(item))
            yield from parts_of(item, (*way, _item(item)))


def _item(item: Any) -> str:
    name = next((item[each] for each in _NAMES if each in item), None) if _is_map(item) else None
    return "=" + json_text(item if name is None else name)


def _is_map(item: Any) -> bool:
    return isinstance(item, Mapping)


def json_text(value: Any) -> str:
    """A value as text."""
    return canonical_json(value).decode()


def _cut(step: Input, part: Part) -> Input:
    tree = _without(step.event.object, part)
    before = None if step.before is None else _without(step.before, part)
    if tree == step.event.object and before == step.before:
        return step
    event = msgspec.structs.replace(step.event, body=canonical_json(tree), tree=tree)
    return replace(step, event=event, before=before)


def _without(tree: Any, part: Part) -> Any:
    first, rest = part[0], part[1:]
    if isinstance(tree, Mapping):
        if first not in tree:
            return tree
        if rest:
            return {**tree, first: _without(tree[first], rest)}
        return {name: value for name, value in tree.items() if name != first}
    if isinstance(tree, list):
        if rest:
            return [_without(each, rest) if _item(each) == first else each for each in tree]
        return [each for each in tree if _item(each) != first]
    return tree


async def _stored(run: OwnRun) -> Store:
    store, info = memory_store(), run.info
    made = await store.log.create_history(
        "candidate",
        seed=info.seed,
        settings=info.settings,
        created=info.created,
        hash=chain.genesis_of(info),
    )
    head = await store.log.head(made.id)
    await store.log.append(made.id, expected=head, events=run.events)
    return store


def export(run: OwnRun, path: Path) -> None:
    """Writes the run as a bundle."""

    async def write() -> None:
        store = await _stored(run)
        info = await find_history(store, "candidate")
        writer = BundleWriter(path)
        await exporting.export_history(store.log, info, writer, program="tests", file=path.name)

    anyio.run(write)


def decide(run: OwnRun) -> DecideReport:
    """A decide replay of the run."""

    async def report() -> DecideReport:
        store = await _stored(run)
        return await replays.decide(store, Settings(), "candidate", "", lambda *_: None)

    return anyio.run(report)
