"""A rehearsal as a page: refusals of the other API first, then decisions by their roots, texts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.analysis import profiles
from app.analysis.diff import text as diff_text
from app.analysis.diff import words
from app.analysis.diff.causes import RootKind
from app.analysis.diff.text import SETTINGS_MAX
from app.analysis.diff.words import Rewritten
from app.analysis.explain import pages
from app.analysis.explain.reasons import Reason, listed
from app.analysis.recordings import uncertainty
from app.analysis.rehearse.admission import FieldsKept, RefusedWrite
from app.analysis.rehearse.attribution import Finding
from app.analysis.rehearse.contents import RULES_CONDITION
from app.analysis.rehearse.defects import Incidence, Shows
from app.analysis.rehearse.report import Rehearsal
from app.domain.controllers import registry
from app.domain.objects.profile import CONFIGURATIONS
from app.domain.values.json_tree import JsonObject

LINES_MAX = 120
"""The number of lines of a page; the JSON has everything."""

_CONFIGURATIONS_CURE = (
    "a driver must apply an entry without `requests` to all requests of the claim"
)

_IN_WORDS = {
    "nodes": "placements",
    "devices": "allocations",
    "evictions": "evictions",
    "conditions": "conditions",
    "events": "Events",
}


def page_json(report: Rehearsal) -> JsonObject:
    """The parts of the page, independent of its width; see `pages.of_json`."""
    return {
        "head": head_of(report),
        "subject": subject_of(report),
        "outcome": report.outcome,
        "notes": notes_of(report),
        "reasons": [reason.to_json() for reason in reasons_of(report)],
    }


def head_of(report: Rehearsal) -> str:
    """The subject of the rehearsal, and whether anything changes."""
    return f"{subject_of(report)}: {report.outcome}"


def subject_of(report: Rehearsal) -> str:
    """The history and the release under which it is rehearsed."""
    return (
        f"{report.history}, of {report.source}, under {report.target} up to revision "
        f"{report.revision}"
    )


def notes_of(report: Rehearsal) -> list[str]:
    """The subject of the comparison, the settings, and the certainty of the answer."""
    counts = [
        f"{report.compared[name]} of {count} {_IN_WORDS.get(name, name)}"
        for name, count in report.decided.items()
    ]
    compared = f"{', '.join(counts)} are decided again as they were" if counts else "no decision"
    notes = [f"compared: {compared}; A is the history as it was, B as it would be"]
    if report.recorded_with:
        turned = {each.rpartition(":")[0] for each in report.diff.switches}
        kept = [each for each in report.recorded_with if each.rpartition("=")[0] not in turned]
        others = [each for each in report.recorded_with if each not in kept]
        if kept:
            shown = ", ".join(kept)
            notes.append(f"the recording shows these switches, and they are kept: {shown}")
        if others:
            shown = ", ".join(others)
            notes.append(f"the recording shows {shown}, {report.target} has it otherwise")
    gates = [each.removeprefix("gate ") for each in report.diff.switches if "gate " in each[:5]]
    if gates:
        notes.append(f"gates: {', '.join(gates)}")
    notes += _defects(report, report.defects.repaired, "repaired")
    notes += _defects(report, report.defects.introduced, "introduced")
    return [*notes, *_unattributed(report), *_unsure(report)]


def _defects(report: Rehearsal, numbers: Sequence[str], word: str) -> Iterator[str]:
    """The known defects that the release repairs or introduces, with those that show here apart."""
    shown = [number for number in numbers if number in report.shown_defects]
    if shown:
        yield f"known defects {word} that change something here:"
        yield from (f"  {number.upper()}: {profiles.WORDS[number]}" for number in shown)
    others = [number.upper() for number in numbers if number not in shown]
    if others:
        also = "also " if shown else "known defects "
        known = "from which no change here is known to follow" if not report.is_quiet else ""
        rest = known or "none of which changes anything here"
        yield f"{also}{word}, {rest}: {', '.join(others)} (`redra profiles {others[0].lower()}`)"


def reasons_of(report: Rehearsal) -> list[Reason]:
    """The changes, the gravest first, each with the objects concerned."""
    branches = (
        _branch("the API refuses", _refusals(report)),
        _branch("API versions", _versions(report)),
        _branch("fields are no longer kept", _fields_kept(report, report.dropped_only)),
        _branch(
            "fields begin to be kept; decisions here are made without them",
            _fields_kept(report, report.begins),
        ),
        _branch(_decisions_text(report), _decisions(report)),
        _branch("known defects that show", _incidents(report.defects.changing)),
        _branch("texts", _rewritten(report, "text", report.contents.texts)),
        _branch("contents", _rewritten(report, "field", report.contents.fields)),
    )
    reasons = [reason for branch in branches for reason in branch]
    if reasons and report.contents.following:
        following = len(report.contents.following)
        objects = "1 object" if following == 1 else f"{following} objects"
        reasons.append(Reason(text=f"texts and contents of {objects} follow from the above"))
    return reasons


def _branch(title: str, children: Iterable[Reason]) -> list[Reason]:
    below = tuple(children)
    return [Reason(text=title, children=below, is_kept=True)] if below else []


def _by(report: Rehearsal, finding: Finding) -> tuple[Reason, ...]:
    """The settings that cause a change, on a line of their own that is never cut off."""
    proof = report.proof(finding)
    if proof is None:
        return ()
    return (Reason(text=f"by {pages.shortened(proof.text, SETTINGS_MAX)}", is_kept=True),)


def _rewritten(report: Rehearsal, kind: str, entries: Sequence[Rewritten]) -> Iterator[Reason]:
    for each in entries:
        reason = words.reason_of(each)
        finding = (kind, *each.words)
        below = (*_by(report, finding), *_consequences(report, each, finding))
        yield replace(reason, children=below)


def _consequences(report: Rehearsal, change: Rewritten, finding: Finding) -> Iterator[Reason]:
    """The consequence of a changed text or field for those who rely on it."""
    off = registry.gates_off(registry.RULE_STATUS, report.diff.b.profile)
    if change.what == RULES_CONDITION and not change.after and off:
        yield Reason(text=f"no rule has any effect there, because {_are_off(off)}", is_kept=True)
    proof = report.proof(finding)
    for setting in () if proof is None else proof.settings:
        kind, _, rest = setting.partition(" ")
        if kind == "rule" and rest.startswith(f"{CONFIGURATIONS}: off → on"):
            yield Reason(text=_CONFIGURATIONS_CURE, is_kept=True)


def _are_off(gates: Sequence[str]) -> str:
    """The text that names disabled gates."""
    if len(gates) == 1:
        return f"the feature gate {gates[0]} is off"
    return f"the feature gates {' and '.join(gates)} are off"


def _refusals(report: Rehearsal) -> Iterator[Reason]:
    """Refused writes, grouped by text; lists that are too long first."""
    grouped: dict[tuple[str, str, str, tuple[Reason, ...]], dict[str, None]] = {}
    for each in sorted(report.refused, key=lambda each: not each.is_over_limit):
        # Texts name their object; without the name, equal texts can be grouped.
        text = each.text.replace(f'"{each.key.name}" ', "") if each.key.name else each.text
        cure = ""
        if each.is_over_limit:
            cure = "; it must be split" if each.must_be_split else "; it is over a limit"
        why = (*_dropped_first(report, each), *_by(report, each.finding))
        place = (cure, text, each.version, why)
        grouped.setdefault(place, {})[str(each.key)] = None
    for (cure, text, version, why), names in grouped.items():
        written = f" (written as {version})" if version else ""
        objects = listed(list(names), len(names))
        yield Reason(text=f"{text}{written}{cure}: {objects}", children=why)


def _dropped_first(report: Rehearsal, write: RefusedWrite) -> Iterator[Reason]:
    """The fields that a refused write loses first; without them its object may be invalid."""
    grouped: dict[str, list[str]] = {}
    for entry in report.dropped_before(write):
        for text in entry.texts:
            path, _, why = text.partition(": ")
            grouped.setdefault(why, []).append(path)
    for why, paths in grouped.items():
        because = why.removeprefix("the field is dropped ") if why else "as it does not know them"
        yield Reason(text=f"the API first drops {', '.join(paths)} {because}")


def _versions(report: Rehearsal) -> Iterator[Reason]:
    for use in report.versions:
        fate = "is gone" if use.is_gone else "is newly deprecated"
        authors = f" by {', '.join(use.authors)}" if use.authors else ""
        instead = f"; {use.instead} is served" if use.is_gone and use.instead else ""
        writes = "1 write" if use.writes == 1 else f"{use.writes} writes"
        yield Reason(
            text=f"{use.api_version} {use.kind} {fate}: {writes}{authors}; {use.text}{instead}"
        )


def _fields_kept(report: Rehearsal, entries: Sequence[FieldsKept]) -> Iterator[Reason]:
    grouped: dict[tuple[str, tuple[Reason, ...]], dict[str, None]] = {}
    for entry in entries:
        for text, finding in zip(entry.texts, entry.findings, strict=True):
            grouped.setdefault((text, _by(report, finding)), {})[str(entry.key)] = None
    for (text, why), names in grouped.items():
        yield Reason(text=f"{text}: {listed(list(names), len(names))}", children=why)


def _decisions_text(report: Rehearsal) -> str:
    diff = report.diff
    classes = ", ".join(f"{count} {_named(name)}" for name, count in diff.counts.items() if count)
    pods = "1 pod has" if len(diff.differences) == 1 else f"{len(diff.differences)} pods have"
    return f"{pods} another outcome: {classes}; {_same(diff.same)} the same"


def _same(count: int) -> str:
    return "1 has" if count == 1 else f"{count} have"


def _named(name: str) -> str:
    return {"only in A": "not made any more", "only in B": "made in addition"}.get(name, name)


def _decisions(report: Rehearsal) -> list[Reason]:
    """The roots with their consequences; refused and dropped writes are shown above them."""
    has_settings = any(root.kind is RootKind.SETTINGS for root, _ in report.diff.roots())
    shown = replace(report.diff, changes=(), switches=report.diff.switches if has_settings else ())
    return diff_text.reasons_of(shown) if report.diff.differences else []


def _incidents(incidents: Sequence[Incidence]) -> Iterator[Reason]:
    words = {Shows.GONE: "no longer shows", Shows.NEW: "shows now", Shows.STAYS: "shows as before"}
    for each in incidents:
        sighting = each.before or each.after
        assert sighting is not None, "an incidence is of one world at least"
        number = f" ({each.number})" if each.number else ""
        title = f": {each.title}" if each.title != each.incident else ""
        times = "once" if sighting.times == 1 else f"{sighting.times} times"
        names = listed([str(key) for key in sighting.objects], len(sighting.objects))
        yield Reason(
            text=f"{each.incident}{number} {words[each.shows]}{title}",
            children=(
                Reason(
                    text=f"{times}, first: {sighting.message} "
                    f"({names}, certainty: {sighting.certainty.value})"
                ),
            ),
        )


def _unattributed(report: Rehearsal) -> Iterator[str]:
    """The note that changes were not attributed to settings, and the reason."""
    count = report.unattributed
    if not count:
        return
    of_changes = "of 1 change" if count == 1 else f"of {count} changes"
    runs = "1 run" if report.trials == 1 else f"{report.trials} runs"
    why = "with fewer of them switched back, the objects change for another reason"
    if report.is_cut_short:
        why = "REDRA_REHEARSE_RUNS_MAX and REDRA_REHEARSE_EVENTS_MAX permit no more"
    yield f"the settings {of_changes} are not known, or not narrowed down, after {runs}: {why}"


def _unsure(report: Rehearsal) -> Iterator[str]:
    if report.unlike:
        unlike = [str(key) for key in report.unlike]
        yield (
            "unsure, because their decisions differ from the recording even without a "
            f"change: {listed(unlike, len(unlike))}"
        )
    if report.aside:
        pods = [f"pod {each.pair.name}" for each in report.aside]
        yield f"unsure, and not counted: {listed(pods, len(pods))}"
    if report.doubtful:
        objects = [str(key) for key in report.doubtful]
        yield (
            "unsure: recorded, but both releases as they are imitated refuse it: "
            f"{listed(objects, len(objects))}"
        )
    if report.placed:
        names = sorted(filter(None, set(report.placed.values())))
        objects = [str(key) for key in report.placed]
        by = f" ({listed(names, len(names))})" if names else ""
        role = "in whose place redra's decides here"
        if report.absent:
            role = "whose choices stay as they were"
        yield (
            f"unsure: placed by a scheduler from outside{by}, {role}: "
            f"{listed(objects, len(objects))}"
        )
    if report.absent:
        controllers = sorted(report.absent)
        yield (
            f"not at work in this history, and therefore in neither world: redra's "
            f"{listed(controllers, len(controllers))}"
        )
    if report.unapplied:
        count = len(report.unapplied)
        inputs = "1 recorded input does" if count == 1 else f"{count} recorded inputs do"
        yield (
            f"{inputs} not apply there, because their objects do not exist or have not reached "
            "that state"
        )
    yield from uncertainty.lines(tuple(report.doubts))
