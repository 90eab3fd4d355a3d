"""The rehearsal of an upgrade: the inputs of a history under its own and another release.

First the recording is decided again under its own settings, and the explanation of its differences
is kept (`continuing.find_control`). Then its inputs run in two worlds that are made alike: one with
the settings of the recording, the other with those of the new release. Only differences between
these two worlds follow from the release. If the first world differs from the recording, no
statement is possible, and these objects are set apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from anyio import lowlevel

from app.analysis.diff import causes
from app.analysis.diff import compare as comparing
from app.analysis.diff.causes import PodDifference
from app.analysis.diff.classes import Class
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import DiffBounds, Side, switches_of
from app.analysis.recordings import recorded_gates
from app.analysis.rehearse import contents, defects, versions
from app.analysis.rehearse.admission import newly_kept
from app.analysis.rehearse.attribution import SettingsSearch
from app.analysis.rehearse.contents import Contents
from app.analysis.rehearse.report import Rehearsal
from app.analysis.replay import differences
from app.analysis.replay.differences import Compared, placed_otherwise
from app.analysis.replay.unapplied import Unapplied
from app.analysis.replay.variants import Switches
from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import IncidentSighting
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, ObjectKey, Revision
from app.domain.objects import profile as profiles
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import diffing, moments, recorded_doubts
from app.service.rehearsing.runs import RehearsedWorld, Worlds, release_of
from app.service.rehearsing.trials import Trials, changes, findings_of, pod_finding
from app.service.replays.deciding import continuing
from app.service.replays.deciding.continuing import Control, Planes
from app.service.replays.replaying import Progress, silent
from app.service.replays.scanning import PAGE, TURN
from app.service.replays.verifying import switches_of as rule_switches


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalRequest:
    """The request for a rehearsal: the release, changed gates and quirks, up to `until`.

    Gates and quirks stay if the settings of the history name them or its recording shows them.
    `exhibits` has number and title of each incident of the gallery. A history of more than
    `events_max` events is refused. `runs_max` and `trial_events_max`, the events of all of them,
    bound the trials that attribute changes to settings.
    """

    release: str
    until: Revision
    gates: Mapping[str, bool]
    quirks: Mapping[str, bool]
    exhibits: Mapping[str, tuple[str, str]]
    bounds: DiffBounds = DiffBounds()
    events_max: int = 500_000
    runs_max: int = 64
    trial_events_max: int = 200_000


async def rehearse(
    log: EventLog,
    history: HistoryInfo,
    wanted: RehearsalRequest,
    planes: Planes,
    progress: Progress = silent,
) -> Rehearsal:
    """The changes of a history under another release.

    Raises InputError for an unknown release, gate or quirk, and RevisionTooLarge.
    """
    if wanted.until > wanted.events_max:
        raise InputError(
            f"history {history.name} has {wanted.until} events to rehearse, more than "
            f"{wanted.events_max}",
            cure="name an earlier moment, or raise REDRA_DIFF_EVENTS_MAX",
        )
    history = await moments.history_at(log, history, wanted.until)
    recorded = await _with_gates(log, history)
    under(recorded, wanted.release, Switches(gates=wanted.gates, quirks=wanted.quirks))
    control = await continuing.find_control(
        log, recorded, None, until=wanted.until, planes=planes, progress=progress
    )
    source = under(recorded, "", control.switches)
    target = under(source, wanted.release, Switches(gates=wanted.gates, quirks=wanted.quirks))
    worlds = Worlds(control=control, planes=planes, seed=history.seed)
    control.runs.step = "running the inputs under the settings of the recording"
    before = await worlds.world(source)
    control.runs.step = f"running the inputs under {wanted.release}"
    after = await worlds.world(target, before.rules)
    compared = differences.compare(
        control.runs.recording.trace, before.run.trace, before.rules.schemas
    )
    trials = Trials(
        worlds=worlds,
        before=before,
        after=after,
        unlike=frozenset(_unlike(before, control, compared)),
        bounds=wanted.bounds,
        runs_max=wanted.runs_max,
        events_max=wanted.trial_events_max,
    )
    return await _report(log, history, wanted, trials)


def _unlike(before: RehearsedWorld, control: Control, compared: Compared) -> dict[str, ObjectKey]:
    """The pods and claims that the unchanged world decides otherwise than recorded."""
    recording = control.runs.recording
    return placed_otherwise(compared, recording.trace, before.run.trace, recording.last)


def _unapplied(before: RehearsedWorld, after: RehearsedWorld) -> list[Unapplied]:
    """The inputs that only the second world could not apply, without those that its API refuses."""
    assert after.admission is not None, "its API judges the recording"
    known = {each.revision for each in before.run.unapplied}
    known |= {each.revision for each in after.admission.refused}
    return [each for each in after.run.unapplied if each.revision not in known]


async def _report(
    log: EventLog,
    history: HistoryInfo,
    wanted: RehearsalRequest,
    trials: Trials,
) -> Rehearsal:
    """The report of the differences between the worlds, with the settings that cause them."""
    before, after, control = trials.before, trials.after, trials.worlds.control
    admission = after.admission
    assert admission is not None, "its API judges the recording"
    source, target = admission.source, admission.target
    recording = control.runs.recording
    diff = await diffing.drive(comparing.compare(before.side, after.side, wanted.bounds))
    compared = differences.compare(recording.trace, before.run.trace, source.schemas)
    unlike = _unlike(before, control, compared)
    same, decided = contents.counted(compared)
    diff, aside = _sorted(diff, set(unlike.values()))
    fared = [each.pair for each in (*diff.differences, *aside)]
    changed = changes(before, after, fared, trials.unlike)
    search = await _attributed(trials, diff.differences, aside, changed)
    return Rehearsal(
        history=history.name,
        revision=wanted.until,
        source=release_of(history),
        target=after.side.name,
        diff=diff,
        aside=aside,
        unlike=sorted(unlike.values()),
        compared=same,
        decided=decided,
        recorded_with=list(control.switches.words()),
        refused=admission.refused,
        dropped=admission.dropped,
        begins=newly_kept(recording.inputs, source, target),
        doubtful=admission.doubtful,
        placed=admission.placed,
        absent=control.absent,
        versions=versions.used(recording.inputs, source.profile, target.profile),
        contents=changed,
        defects=defects.compared(
            switches_of(before.side),
            switches_of(after.side),
            (await _sightings(before.side), await _sightings(after.side)),
            wanted.exhibits,
        ),
        unapplied=_unapplied(before, after),
        doubts=await recorded_doubts.doubts_of(log, history),
        proofs=trials.proofs_of(search),
        trials=search.runs,
        unattributed=len(search.unattributed),
        is_cut_short=search.is_cut_short,
    )


async def _attributed(
    trials: Trials,
    sure: Sequence[PodDifference],
    aside: Sequence[PodDifference],
    changed: Contents,
) -> SettingsSearch:
    """Searches for the settings that cause the changes, and notes those of each `sure` pod."""
    admission = trials.after.admission
    assert admission is not None, "its API judges the recording"
    search = await trials.search(
        findings_of([each.pair for each in sure], changed, admission),
        [pod_finding(each.pair) for each in aside],
        changed.subjects,
    )
    proofs = trials.proofs_of(search)
    made_by = admission.settings_of(proofs)
    for each in sure:
        if proof := proofs.get(pod_finding(each.pair)):
            causes.prove(each, proof, made_by)
    return search


def under(history: HistoryInfo, release: str, switches: Switches) -> HistoryInfo:
    """The history with other settings; an empty release keeps its own. Raises InputError.

    The schedulers of the known patch releases do not see rules. So with such a release, quirk c24
    has the default of the release, not the value of the history, unless the switches name it.
    """
    settings: JsonObject = {
        name: value for name, value in history.settings.items() if name != "paced"
    }
    settings["gates"] = {**settings.get("gates", {}), **switches.gates}
    quirks = dict(settings.get("quirks", {}))
    if release in profiles.PATCHES:
        quirks.pop("c24", None)
    settings["quirks"] = quirks | dict(switches.quirks)
    if release or switches.profile:
        settings["profile"] = release or switches.profile
    profiles.Profile(gates=switches.gates)  # refuses what cannot be switched
    profiles.from_settings(settings)
    registry.options_from(settings)
    return msgspec.structs.replace(history, settings=settings)


def _sorted(diff: DiffReport, unlike: set[ObjectKey]) -> tuple[DiffReport, list[PodDifference]]:
    """The report without the differences that are set apart, and a list of these.

    A pod with the same outcome and only another message is not a changed decision.
    """
    decided = [each for each in diff.differences if each.classes != (Class.SAID,)]
    aside = [each for each in decided if _is_aside(each, unlike)]
    sure = [each for each in decided if each not in aside]
    for each in sure:
        each.below = [below for below in each.below if below in sure]
    undecided = len(diff.differences) - len(decided)
    counts = Counter(each.classes[0].value for each in sure)
    return replace(diff, differences=tuple(sure), counts=counts, same=diff.same + undecided), aside


def _is_aside(difference: PodDifference, unlike: set[ObjectKey]) -> bool:
    """Whether the difference, or a cause of it, is about an object that is set apart."""
    for each in (difference, *difference.chain):
        for course in (each.pair.a, each.pair.b):
            if course is not None and course.key in unlike:
                return True
    return False


async def _sightings(side: Side) -> list[IncidentSighting]:
    quirks = registry.allocator_quirks_of(side.profile, side.options)
    # Known defects of the release are what the scan looks for, so they are not excused.
    switches = replace(
        rule_switches(side.profile, quirks), distinct_by_last=False, rules_unseen=False
    )
    scan = Scan(switches)
    for first in range(0, len(side.events), TURN):
        scan.follow(side.events[first : first + TURN])
        await lowlevel.checkpoint()
    return scan.sightings()


async def _with_gates(log: EventLog, history: HistoryInfo) -> HistoryInfo:
    """The history with the gate of rules on, if it is a recording that held rules."""
    after = Revision(0)
    while recorded_gates.leave_rules_open(history.settings) and (
        page := await log.read(history.id, after=after, limit=PAGE)
    ):
        if recorded_gates.hold_rules(page):
            settings = recorded_gates.served_rules(history.settings)
            return msgspec.structs.replace(history, settings=settings)
        after = page[-1].revision
    return history
