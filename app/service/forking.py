"""Forks of histories: they go on where another stood, with its settings or with others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.analysis.edits import Edit, commands_of
from app.analysis.recordings import recorded_gates
from app.domain.controllers import registry
from app.domain.errors import InputError, LogError, Rejected
from app.domain.log import Actor, Head, HistoryInfo, Revision, chain
from app.domain.log.forks import first_draft
from app.domain.objects import profile as profiles
from app.domain.objects.rules import Rules
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog, RuntimePorts
from app.service import making
from app.service.runtime import HistoryRuntime, RuntimeBounds

MANAGER = "redra-fork"
"""Owns the fields that a fork changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What is decided otherwise in a fork; what is not named is as in the parent."""

    profile: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    quirks: Mapping[str, bool] = field(default_factory=dict)


async def end_at(log: EventLog, history: HistoryInfo, revision: Revision) -> Head:
    """Revision, hash and clock of an event. Raises InputError for a history without events."""
    rows = await log.read_stored(history.id, after=Revision(revision - 1), limit=1, until=revision)
    if not revision or not rows or rows[0].clock is None:
        raise InputError(
            f"history {history.name} has no event at revision {revision}",
            cure="name a revision from 1 on",
        )
    return Head(revision=revision, hash=rows[0].event.hash, time=rows[0].clock)


async def settings_of(
    log: EventLog, parent: HistoryInfo, end: Head, switches: Switches
) -> JsonObject:
    """The settings of a fork. Raises InputError for unknown switches.

    It is no recording, whatever its parent is: it goes on from there, and its time from the time of
    that moment, while somebody serves it.
    """
    settings = parent.settings
    if recorded_gates.leave_rules_open(settings):
        group, resource = api_resources.DEVICE_TAINT_RULES
        rules = await log.objects_at(
            parent.id, end.revision, group=group, resource=resource, limit=1
        )
        if rules:
            settings = recorded_gates.served_rules(settings)
    settings = {name: value for name, value in settings.items() if name != "recorded"}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Forker:
    """Makes forks with what `Histories` opens histories with."""

    ports: RuntimePorts
    rules: Callable[[HistoryInfo], Rules]
    bounds: RuntimeBounds

    async def fork(
        self,
        parent: HistoryInfo,
        name: str,
        end: Head,
        switches: Switches,
        edits: Sequence[Edit],
        actor: Actor,
    ) -> HistoryInfo:
        """Make the fork `name` that goes on at `end`, with the edits: whole, or not at all."""
        log, created = self.ports.log, self.ports.clock.now()
        make = partial(
            make_fork,
            log,
            parent=parent,
            end=await end_at(log, parent, end.revision),
            seed=parent.seed,
            settings=await settings_of(log, parent, end, switches),
            created=created,
            actor=actor,
        )
        async with making.unfinished(log, name, make) as made:
            if edits:
                await self._edit(made, edits, actor)
        return made

    async def _edit(self, info: HistoryInfo, edits: Sequence[Edit], actor: Actor) -> None:
        """Make edits in a history that nobody serves yet."""
        rules = self.rules(info)
        runtime = HistoryRuntime(info=info, ports=self.ports, rules=rules, bounds=self.bounds)
        problem: Exception | None = None
        async with runtime.running():
            try:
                commands = commands_of(edits, runtime.views.objects, rules.profile, manager=MANAGER)
                await runtime.submit_all(commands, actor=actor)
            except (InputError, Rejected, LogError) as found:
                # Raised below: leaving a task group would wrap it.
                problem = found
        if problem is not None:
            raise problem
