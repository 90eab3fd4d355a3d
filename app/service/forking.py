"""Forks of histories: a fork continues where another history stood, perhaps with new settings."""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
from anyio import lowlevel

from app.analysis.edits import Apply, Edit, MissingObject, commands_of
from app.analysis.recordings import recorded_gates
from app.analysis.replay import facts
from app.analysis.replay.beginning import Beginning, end_of_placement, waits_for_devices
from app.analysis.replay.variants import Switches
from app.domain.controllers import registry
from app.domain.controllers.scheduling.binding_cycle import waiting_binding
from app.domain.controllers.scheduling.planning import NAME as SCHEDULING
from app.domain.errors import InputError, Invalid, UnreadablePatch
from app.domain.log import (
    DECISION,
    Actor,
    Event,
    EventType,
    Head,
    HistoryInfo,
    ObjectKey,
    Revision,
    chain,
)
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.forks import first_draft
from app.domain.objects import profile as profiles
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import Command
from app.domain.values import api_resources, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog, RuntimePorts
from app.service import history_creation, moments
from app.service.folding import snapshots
from app.service.replays.deciding import continuing
from app.service.replays.deciding.continuing import Continued, Planes
from app.service.replays.replaying import Progress, silent
from app.service.runtime import HistoryRuntime, RuntimeBounds
from projections.objects import ObjectsProjection

MANAGER = "redra-fork"
"""The field manager that owns the fields a fork changes."""

RECORDED_WITH = "recordedWith"
"""The setting of a fork with recorded inputs for the switches of the recorded control plane.

They were found by a decide replay; the settings of the source do not have them.
"""

_WITHIN = (
    "revision {named} is in the middle of a write of a controller; the fork begins after it, "
    "at revision {end}"
)

_WRITE_PAGE = 100
"""Events before and after a moment among which the scheduler's write there is looked for."""

_DECISIONS_MAX = 20
"""The decisions of all controllers about a pod among which its last placement is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSwitches:
    """The settings that differ in a fork; all others are those of the parent."""

    profile: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    quirks: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """The request for a fork: its switches, its edits, and how the parent's inputs continue.

    With `until`, the writes of users, drivers and kubelets in the parent after the moment, up to
    that revision, continue in the fork under virtual time, on top of the changes. Without `until`
    the fork is a live cluster from the moment on.
    """

    switches: ForkSwitches = ForkSwitches()
    edits: Sequence[Edit] = ()
    until: Revision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFork:
    """A finished fork, and the result of the parent's inputs if they continue in it.

    `notes` are sentences about edits whose effect depends on a setting.
    """

    info: HistoryInfo
    continued: Continued | None = None
    notes: tuple[str, ...] = ()


async def end_at(log: EventLog, history: HistoryInfo, revision: Revision) -> Head:
    """Revision, hash and clock of an event. Raises InputError when there is no such event."""
    first = revision or Revision(1)
    rows = await log.read_stored(history.id, after=Revision(first - 1), limit=1, until=first)
    if not rows or rows[0].clock is None:
        raise InputError(f"history {history.name} has no event at revision {revision}")
    if not revision:
        raise InputError(
            f"there are no events before that time: history {history.name} begins at "
            f"{timestamps.micro_text(rows[0].clock)}",
            cure="name a later moment, or a revision from 1 on",
        )
    return Head(revision=revision, hash=rows[0].event.hash, time=rows[0].clock)


async def _after_begun_claims(log: EventLog, history: HistoryInfo, end: Head) -> Head:
    """The head after the scheduler has completed what it is writing in a recording, if it does."""
    first = Revision(max(end.revision - _WRITE_PAGE, 0))
    before = await log.read(history.id, after=first, limit=end.revision - first)
    after = await log.read(history.id, after=end.revision, limit=_WRITE_PAGE)
    complete = end_of_placement(before, after)
    return end if complete is None else await end_at(log, history, complete)


async def settings_of(
    log: EventLog, parent: HistoryInfo, end: Head, switches: ForkSwitches
) -> JsonObject:
    """The settings of a fork. Raises InputError for unknown switches.

    A fork is neither a recording nor a paced replay, whatever its parent is. It continues from the
    moment, and its time continues from the time of that moment while it is served.
    """
    settings = parent.settings
    if recorded_gates.leave_rules_open(settings):
        group, resource = api_resources.DEVICE_TAINT_RULES
        rules = await log.objects_at(
            parent.id, end.revision, group=group, resource=resource, limit=1
        )
        if rules:
            settings = recorded_gates.served_rules(settings)
    settings = {
        name: value
        for name, value in settings.items()
        if name not in ("recorded", "paced", RECORDED_WITH)
    }
    gates: dict[str, bool] = {**settings.get("gates", {}), **switches.gates}
    quirks: dict[str, bool] = {**settings.get("quirks", {}), **switches.quirks}
    if switches.profile:
        settings["profile"] = switches.profile
    if gates:
        settings["gates"] = gates
    if quirks:
        settings["quirks"] = quirks
    profiles.from_settings(settings)
    registry.options_from(settings)
    settings["ownTime"] = True
    return settings


def as_recorded(parent: HistoryInfo, fork: HistoryInfo) -> HistoryInfo:
    """The source of a fork, with the switches that were found for its recorded control plane."""
    shown = fork.settings.get(RECORDED_WITH)
    if not fork.is_fork or fork.parent != parent.id or not isinstance(shown, dict):
        return parent
    settings: JsonObject = {**parent.settings}
    for part in ("gates", "quirks"):
        settings[part] = {**json_tree.mapping(settings, part), **json_tree.mapping(shown, part)}
    if profile := json_tree.text(shown, "profile"):
        settings["profile"] = profile
    return msgspec.structs.replace(parent, settings=settings)


async def make_fork(
    log: EventLog,
    name: str,
    *,
    parent: HistoryInfo,
    end: Head,
    seed: int,
    settings: JsonObject,
    created: Instant,
    actor: Actor,
) -> HistoryInfo:
    """Make a fork with its first event. Raises AlreadyExists, NotFound."""
    info = await log.fork_history(
        name, parent=parent, end=end, seed=seed, settings=settings, created=created
    )
    draft = first_draft(info, parent, end, actor)
    event = chain.seal(draft, Revision(end.revision + 1), end.hash)
    await log.append(info.id, expected=end, events=[event])
    return info


async def removed_nodes(
    log: EventLog, history: HistoryInfo, objects: Sequence[Event], until: Revision
) -> list[Event]:
    """The removals of the nodes that pods among the objects name and that do not exist.

    `objects` are the last events of all objects at that revision.
    """
    pods = [each for each in objects if each.key[:2] == api_resources.PODS]
    nodes = {each.key.name for each in objects if each.key[:2] == api_resources.NODES}
    named = {core.node_name(each.object) for each in pods}
    return await removals_of(log, history, named - nodes, until)


async def removals_of(
    log: EventLog, history: HistoryInfo, names: Set[str], until: Revision
) -> list[Event]:
    """The removals of nodes with these names that do not exist at that revision, in order."""
    last: list[Event] = []
    for name in names - {""}:
        key = ObjectKey(*api_resources.NODES, "", name)
        last += await log.read_object(history.id, key, until=until, limit=1)
    removals = [event for event in last if event.type is EventType.OBJECT_DELETED]
    return sorted(removals, key=lambda event: event.revision)


async def bindings_under_way(
    log: EventLog, history: HistoryInfo, objects: Sequence[Event], until: Revision
) -> list[Event]:
    """The scheduler's last decisions about pods that it has placed and not bound yet.

    `objects` are the last events of all objects at that revision. Such a pod has a nominated node
    or a claim. Of the pods of a recording there are no decisions: objects show who waits.
    """
    reserved = {
        uid
        for each in objects
        if each.key[:2] == api_resources.RESOURCE_CLAIMS
        for uid in facts.consumers(each.object)
    }
    pods = [
        each.key
        for each in objects
        if each.key[:2] == api_resources.PODS
        and not core.node_name(each.object)
        and (each.uid in reserved or core.nominated_node_name(each.object))
    ]
    decisions = await decisions_under_way(log, history, pods, until)
    for wait in waits_for_devices(objects):
        if not await log.read_object(history.id, wait.key, until=until, limit=1):
            decisions.append(wait)
    return decisions


async def decisions_under_way(
    log: EventLog, history: HistoryInfo, pods: Sequence[ObjectKey], until: Revision
) -> list[Event]:
    """The scheduler's last decisions about these pods, of those that place without binding yet."""
    decisions: list[Event] = []
    for pod in pods:
        key = DECISION._replace(namespace=pod.namespace, name=pod.name)
        decided = await log.read_object(history.id, key, until=until, limit=_DECISIONS_MAX)
        last = next((each for each in decided if each.object["controller"] == SCHEDULING), None)
        if last is not None and last.object["outcome"] in waiting_binding.UNDER_WAY:
            decisions.append(last)
    return sorted(decisions, key=lambda event: event.revision)


@dataclass(frozen=True, slots=True)
class Forker:
    """Makes forks with the ports and rules with which `Histories` opens histories.

    `planes` are needed for forks in which recorded inputs continue.
    """

    ports: RuntimePorts
    rules: Callable[[HistoryInfo], Rules]
    bounds: RuntimeBounds
    planes: Planes | None = None
    progress: Progress = silent

    async def fork(
        self, parent: HistoryInfo, name: str, moment: str, wanted: ForkRequest, actor: Actor
    ) -> MadeFork:
        """Make the fork `name` that continues at a moment, or at the end: whole, or not at all.

        Raises InputError for an invalid request, Rejected for an edit that is refused, and
        RevisionTooLarge.
        """
        profiles.Profile(gates=wanted.switches.gates)  # refuses what cannot be switched
        turned = _with_applied_rules(parent, wanted)
        log, now = self.ports.log, self.ports.clock.now()
        try:
            made = await self._fork(parent, name, moment, turned, actor)
        except MissingObject as missing:
            at = await moments.find_revision(log, parent, moment, now) if moment else None
            raise InputError(
                missing.problem, cure=await moments.life_of(log, parent, missing.key, at)
            ) from missing
        except UnreadablePatch as refusal:
            # Of several edits the person must know which; upstream's words name no object.
            message = f"{refusal.subject} cannot be patched: {refusal.detail}"
            raise Invalid(message, causes=refusal.causes) from refusal
        is_turned = turned.switches != wanted.switches
        notes = _notes(made.info, wanted.edits, is_turned=is_turned)
        return replace(made, notes=(*made.notes, *notes))

    async def _fork(
        self, parent: HistoryInfo, name: str, moment: str, wanted: ForkRequest, actor: Actor
    ) -> MadeFork:
        log = self.ports.log
        end, notes = await log.head(parent.id), tuple[str, ...]()
        if moment:
            now = self.ports.clock.now()
            await moments.check_inside(log, parent, moment, now, is_past=True)
            named = await moments.find_revision(log, parent, moment, now)
            end = await end_at(log, parent, await moments.end_of_write(log, parent, named))
            if wanted.until is not None and parent.settings.get("recorded"):
                end = await _after_begun_claims(log, parent, end)
            if end.revision != named:
                notes = (_WITHIN.format(named=named, end=end.revision),)
            # After the last event before an instant, time has passed up to that instant.
            begun = await moments.find_time(log, parent, moment, named, now)
            end = msgspec.structs.replace(end, time=max(end.time, begun))
        if wanted.until is not None:
            return replace(await self._go_on(parent, name, end, wanted, actor), notes=notes)
        settings = await settings_of(log, parent, end, wanted.switches)
        async with self._made(parent, name, end, settings, actor) as made:
            if wanted.edits:
                await self._edit(made, wanted.edits, actor)
        return MadeFork(info=made, notes=notes)

    def _made(
        self, parent: HistoryInfo, name: str, end: Head, settings: JsonObject, actor: Actor
    ) -> AbstractAsyncContextManager[HistoryInfo]:
        log, created = self.ports.log, self.ports.clock.now()
        make = partial(
            make_fork,
            log,
            parent=parent,
            end=end,
            seed=parent.seed,
            settings=settings,
            created=created,
            actor=actor,
        )
        return history_creation.unfinished(log, name, make)

    async def _go_on(
        self, parent: HistoryInfo, name: str, end: Head, wanted: ForkRequest, actor: Actor
    ) -> MadeFork:
        """Make a fork in which the parent's inputs continue."""
        assert self.planes is not None, "whoever takes such wishes has planes"
        assert wanted.until is not None, "that is what makes it such a fork"
        log = self.ports.log
        if wanted.until <= end.revision:
            raise InputError(
                f"there are no inputs after revision {end.revision} up to {wanted.until}",
                cure="fork at an earlier moment, or let the inputs end at a later one",
            )
        before = await _with_gates(log, parent, end)
        state = await self._state_at(parent, end.revision)
        objects = state.left_over(end.revision)
        beginning = Beginning(
            head=end,
            after=end.revision,
            state=b"".join(state.dump_parts()),
            objects=objects,
            removed_nodes=await removed_nodes(log, parent, objects, end.revision),
            bindings=await bindings_under_way(log, parent, objects, end.revision),
        )
        control = await continuing.find_control(
            log,
            before,
            beginning,
            until=wanted.until,
            planes=self.planes,
            progress=self.progress,
        )
        seen = control.switches
        switches = ForkSwitches(
            profile=wanted.switches.profile or seen.profile,
            gates={**seen.gates, **wanted.switches.gates},
            quirks={**seen.quirks, **wanted.switches.quirks},
        )
        settings = await settings_of(log, before, end, switches)
        if seen != Switches():
            settings[RECORDED_WITH] = msgspec.to_builtins(seen)
        is_changed = bool(wanted.edits or wanted.switches != ForkSwitches())
        async with self._made(parent, name, end, settings, actor) as made:
            head = await log.head(made.id)
            profile = self.rules(made).profile

            def commands(objects: ObjectsReader) -> Sequence[Command]:
                return commands_of(wanted.edits, objects, profile, manager=MANAGER)

            seed = int.from_bytes(head.hash[:8], "big")
            continued = await continuing.go_on(
                control,
                replace(beginning, head=head),
                self.planes.altered(made, seed),
                edits=commands if is_changed else None,
                actor=actor,
            )
            for first in range(0, len(continued.events), EVENTS_PAGE):
                head = await log.append(
                    made.id, expected=head, events=continued.events[first : first + EVENTS_PAGE]
                )
        return MadeFork(info=made, continued=continued)

    async def _state_at(self, info: HistoryInfo, revision: Revision) -> ObjectsProjection:
        """The objects at a revision, from the nearest kept state before it."""
        objects = ObjectsProjection(tells_changes=False)
        log = self.ports.log
        if self.ports.views is not None:
            kept = await snapshots.load_of_line(
                self.ports.views, log, info, (objects.name, objects.version), until=revision
            )
            if kept is not None:
                objects.load(kept[2])
        while page := await log.read(
            info.id, after=objects.revision, limit=EVENTS_PAGE, until=revision
        ):
            for event in page:
                objects.fold(event)
            await lowlevel.checkpoint()
        return objects

    async def _edit(self, info: HistoryInfo, edits: Sequence[Edit], actor: Actor) -> None:
        """Make edits in a history that is not served yet."""
        rules = self.rules(info)
        runtime = HistoryRuntime(info=info, ports=self.ports, rules=rules, bounds=self.bounds)

        def commands(loaded: HistoryRuntime) -> Sequence[Command]:
            return commands_of(edits, loaded.views.objects, rules.profile, manager=MANAGER)

        await history_creation.write(runtime, commands, actor=actor)


def _with_applied_rules(parent: HistoryInfo, wanted: ForkRequest) -> ForkRequest:
    """The request, with the gate of rules on if it applies a rule and nothing sets the gate."""
    gates = wanted.switches.gates
    is_open = recorded_gates.leave_rules_open(parent.settings) and profiles.RULES_GATE not in gates
    profile = wanted.switches.profile or parent.settings.get("profile", profiles.DEFAULT_VERSION)
    is_on = profiles.from_settings({"profile": profile}).enabled(profiles.RULES_GATE)
    if not is_open or is_on or not _applied_rules(wanted.edits):
        return wanted
    switches = replace(wanted.switches, gates={**gates, profiles.RULES_GATE: True})
    return replace(wanted, switches=switches)


def _applied_rules(edits: Sequence[Edit]) -> list[str]:
    """The names of the DeviceTaintRules among the objects to apply."""
    trees = [edit.tree for edit in edits if isinstance(edit, Apply)]
    return [meta.name(tree) for tree in trees if tree.get("kind") == "DeviceTaintRule"]


def _notes(made: HistoryInfo, edits: Sequence[Edit], *, is_turned: bool) -> tuple[str, ...]:
    """Notes about applied rules: whether the gate for them, off by default before 1.37, is on."""
    gate, rules = profiles.RULES_GATE, _applied_rules(edits)
    if not rules:
        return ()
    if not profiles.from_settings(made.settings).enabled(gate):
        return (f"the gate {gate} is off in it, so {', '.join(rules)} has no effect",)
    if is_turned:
        return (f"the gate {gate} is on in it, because of {', '.join(rules)}",)
    return ()


async def _with_gates(log: EventLog, info: HistoryInfo, end: Head) -> HistoryInfo:
    """The history with the gate of rules on, if a recording held rules at `end` or later."""
    settings = await settings_of(log, info, end, ForkSwitches())
    after = end.revision
    while recorded_gates.leave_rules_open(info.settings) and (
        page := await log.read(info.id, after=after, limit=EVENTS_PAGE)
    ):
        if recorded_gates.hold_rules(page):
            settings = recorded_gates.served_rules(settings)
            break
        after = page[-1].revision
    gates = {"gates": settings["gates"]} if "gates" in settings else {}
    return msgspec.structs.replace(info, settings={**info.settings, **gates})
