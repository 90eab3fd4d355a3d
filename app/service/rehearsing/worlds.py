"""An upgrade rehearsed: the inputs of a history under another release, against those under its own.

The recording is first decided again as it was, and what proves its differences is kept
(`continuing.find_control`). Then its inputs go through two worlds that are made alike: one with the
settings of the recording, the other with those of the release to come. Only what these two do not
have in common follows from the release. What the first does otherwise than the recording is set
apart: nothing can be said of it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
from anyio import lowlevel

from app.analysis.diff import compare as comparing
from app.analysis.diff.causes import Difference
from app.analysis.diff.classes import Class
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import DiffBounds, Side, switches_of
from app.analysis.recordings import recorded_gates
from app.analysis.rehearse import contents, defects, kept, versions
from app.analysis.rehearse.admission import Admission
from app.analysis.rehearse.contents import Following
from app.analysis.rehearse.report import Rehearsal
from app.analysis.replay import differences
from app.analysis.replay.differences import Aspect, Compared
from app.analysis.replay.unapplied import Unapplied
from app.analysis.replay.variants import Switches
from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import Sighting
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import Actor, HistoryInfo, ObjectKey, Revision
from app.domain.objects import profile as profiles
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import diffing, recorded_doubts
from app.service.replays.deciding import continuing
from app.service.replays.deciding.altered import Admit, Alteration
from app.service.replays.deciding.continuing import Control, Planes
from app.service.replays.deciding.replay import ControlPlane
from app.service.replays.deciding.run import Run
from app.service.replays.replaying import Progress, silent
from app.service.replays.scanning import PAGE, TURN
from app.service.replays.verifying import switches_of as rule_switches

_SELF = Actor(user="redra:rehearsal")

_PLACEMENTS = frozenset((Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is rehearsed: the release, with gates and quirks that differ from it, up to `until`.

    Gates and quirks that the settings of the history name, or that its recording shows, stay.
    `exhibits` has number and title of each incident of the gallery. A history of more than
    `events_max` events is refused.
    """

    release: str
    until: Revision
    gates: Mapping[str, bool]
    quirks: Mapping[str, bool]
    exhibits: Mapping[str, tuple[str, str]]
    bounds: DiffBounds = DiffBounds()
    events_max: int = 500_000


async def rehearse(
    log: EventLog,
    history: HistoryInfo,
    wanted: Wanted,
    planes: Planes,
    progress: Progress = silent,
) -> Rehearsal:
    """What changes for a history under another release.

    Raises InputError for a release, gate or quirk that is not known, RevisionTooLarge.
    """
    if wanted.until > wanted.events_max:
        raise InputError(
            f"history {history.name} has {wanted.until} events to rehearse, more than "
            f"{wanted.events_max}",
            cure="name an earlier moment, or raise REDRA_DIFF_EVENTS_MAX",
        )
    recorded = await _with_gates(log, history)
    under(recorded, wanted.release, Switches(gates=wanted.gates, quirks=wanted.quirks))
    control = await continuing.find_control(
        log, recorded, None, until=wanted.until, planes=planes, progress=progress
    )
    source = under(recorded, "", control.switches)
    target = under(source, wanted.release, Switches(gates=wanted.gates, quirks=wanted.quirks))
    ours = _Plane(planes.altered(source, history.seed))
    theirs = _Plane(planes.altered(target, history.seed))
    admission = Admission(source=ours.rules, target=theirs.rules)
    worlds = _Worlds(
        control=control,
        source=source,
        target=target,
        before=await _run(control, ours.plane, None),
        after=await _run(control, theirs.plane, admission.admit),
        admission=admission,
    )
    return await _report(log, history, wanted, worlds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worlds:
    """Both worlds after their runs, and the API of the second."""

    control: Control
    source: HistoryInfo
    target: HistoryInfo
    before: Run
    after: Run
    admission: Admission

    def unlike(self, compared: Compared) -> dict[str, ObjectKey]:
        """The pods and claims that are decided otherwise than recorded without any change."""
        keys = {**self.before.trace.keys, **self.control.runs.recording.trace.keys}
        return {uid: keys[uid] for aspect, uid, _ in compared.different if aspect in _PLACEMENTS}

    def unapplied(self) -> list[Unapplied]:
        """The inputs that the second world alone leaves out, but for those that it refuses."""
        known = {each.revision for each in self.before.unapplied}
        known |= {each.revision for each in self.admission.refused}
        return [each for each in self.after.unapplied if each.revision not in known]


async def _report(
    log: EventLog, history: HistoryInfo, wanted: Wanted, worlds: _Worlds
) -> Rehearsal:
    """What the two worlds do not have in common."""
    control, admission = worlds.control, worlds.admission
    source, target = admission.source, admission.target
    recording = control.runs.recording
    sides = (
        _side(worlds.source, worlds.before, control),
        _side(worlds.target, worlds.after, control),
    )
    diff = await diffing.drive(comparing.compare(*sides, wanted.bounds))
    compared = differences.compare(recording.trace, worlds.before.trace, source.schemas)
    unlike = worlds.unlike(compared)
    same, decided = contents.counted(compared)
    diff, aside = _sorted(diff, set(unlike.values()))
    changed = {
        course.uid
        for each in (*diff.differences, *aside)
        for course in (each.pair.a, each.pair.b)
        if course is not None
    }
    named = {each.key for each in admission.refused} | {each.key for each in admission.dropped}
    return Rehearsal(
        history=history.name,
        revision=wanted.until,
        source=_release(worlds.source),
        target=_release(worlds.target),
        diff=diff,
        aside=aside,
        unlike=sorted(unlike.values()),
        compared=same,
        decided=decided,
        recorded_with=list(control.switches.words()),
        refused=admission.refused,
        dropped=admission.dropped,
        begins=kept.begins(recording.inputs, source, target),
        doubtful=admission.doubtful,
        versions=versions.used(recording.inputs, source.profile, target.profile),
        contents=contents.changed(
            worlds.before.trace,
            worlds.after.trace,
            Following(pods=frozenset(changed), objects=frozenset(named)),
            target.schemas,
            frozenset(unlike),
        ),
        defects=defects.compared(
            switches_of(sides[0]),
            switches_of(sides[1]),
            (await _sightings(sides[0]), await _sightings(sides[1])),
            wanted.exhibits,
        ),
        unapplied=worlds.unapplied(),
        doubts=await recorded_doubts.doubts_of(log, history),
    )


def under(history: HistoryInfo, release: str, switches: Switches) -> HistoryInfo:
    """The history with other settings; an empty release is its own. Raises InputError."""
    settings: JsonObject = {
        name: value for name, value in history.settings.items() if name != "paced"
    }
    settings["gates"] = {**settings.get("gates", {}), **switches.gates}
    settings["quirks"] = {**settings.get("quirks", {}), **switches.quirks}
    if release or switches.profile:
        settings["profile"] = release or switches.profile
    profiles.Profile(gates=switches.gates)  # refuses what cannot be switched
    profiles.from_settings(settings)
    registry.options_from(settings)
    return msgspec.structs.replace(history, settings=settings)


class _Plane:
    """A control plane with its rules."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.rules = plane.rules(Switches())


async def _run(control: Control, plane: ControlPlane, admit: Admit | None) -> Run:
    """The recorded inputs in a world of their own."""
    alteration = Alteration(edits=lambda _: (), actor=_SELF, control=control.readiness)
    if admit is not None:
        alteration = replace(alteration, admit=admit)
    # The switches are in the settings of that world.
    variant = replace(control.variant, switches=Switches())
    return await control.runs.run(variant, keep_events=True, plane=plane, alteration=alteration)


def _side(info: HistoryInfo, run: Run, control: Control) -> Side:
    """One world; both go on alike after the recording, until what was under way has ended."""
    return replace(
        diffing.side_of(info, run.timeline.events, _release(info)), until=control.runs.last
    )


def _sorted(diff: DiffReport, unlike: set[ObjectKey]) -> tuple[DiffReport, list[Difference]]:
    """The report without differences of which nothing can be said, and these.

    A pod that fares the same and is only told so in other words is no changed decision.
    """
    decided = [each for each in diff.differences if each.classes != (Class.SAID,)]
    aside = [each for each in decided if _is_aside(each, unlike)]
    sure = [each for each in decided if each not in aside]
    for each in sure:
        each.below = [below for below in each.below if below in sure]
    said = len(diff.differences) - len(decided)
    counts = Counter(each.classes[0].value for each in sure)
    return replace(diff, differences=tuple(sure), counts=counts, same=diff.same + said), aside


def _is_aside(difference: Difference, unlike: set[ObjectKey]) -> bool:
    """Whether a pod or a claim in it, or in what it follows from, is decided otherwise anyway."""
    for each in (difference, *difference.chain):
        for course in (each.pair.a, each.pair.b):
            if course is not None and course.key in unlike:
                return True
    return False


async def _sightings(side: Side) -> list[Sighting]:
    quirks = registry.allocator_quirks_of(side.profile, side.options)
    # What the release is known to do wrong is what is looked for.
    switches = replace(
        rule_switches(side.profile, quirks), distinct_by_last=False, rules_unseen=False
    )
    scan = Scan(switches)
    for first in range(0, len(side.events), TURN):
        scan.follow(side.events[first : first + TURN])
        await lowlevel.checkpoint()
    return scan.found()


async def _with_gates(log: EventLog, history: HistoryInfo) -> HistoryInfo:
    """The history with the gate of rules, where it is a recording that held some."""
    after = Revision(0)
    while recorded_gates.leave_rules_open(history.settings) and (
        page := await log.read(history.id, after=after, limit=PAGE)
    ):
        if recorded_gates.hold_rules(page):
            settings = recorded_gates.served_rules(history.settings)
            return msgspec.structs.replace(history, settings=settings)
        after = page[-1].revision
    return history


def _release(info: HistoryInfo) -> str:
    profile = profiles.from_settings(info.settings)
    return profile.patch or profile.version
