"""Repairs of a history's known defects, and the outcome under a repair.

A repair is a later release; when no release repairs the defect, it is the defect's switch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from app.analysis.diff import sides
from app.analysis.minimise.material import Material
from app.bootstrap.engines import Engines
from app.bootstrap.gallery import incident_files
from app.bootstrap.handover.stories import StoryRun
from app.domain.errors import InputError
from app.domain.objects import profile as profiles
from app.domain.values.json_tree import JsonObject
from app.service.replays.trials import Ran, Runner

_QUIRK = "quirk "


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a run: pods, claims and rules by name, and the violated invariants."""

    pods: Mapping[str, str]
    claims: Mapping[str, str]
    rules: Mapping[str, str]
    violations: Sequence[str]

    def differing(self, other: "Outcome") -> Mapping[str, Mapping[str, str]]:
        """The parts that differ in the other outcome, with the other's values."""
        parts = {
            "pods": (self.pods, other.pods),
            "claims": (self.claims, other.claims),
            "rules": (self.rules, other.rules),
        }
        return {name: theirs for name, (mine, theirs) in parts.items() if mine != theirs}

    def violations_ended_in(self, other: "Outcome") -> list[str]:
        """The violations that occur in this outcome and not in the other."""
        return [each for each in self.violations if each not in other.violations]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Settings under which known defects are repaired, so that the history is decided otherwise.

    `release` is the release the history was decided as. `numbers` are the numbers of the repaired
    defects in the pages of behaviours: those whose repair alone changes the outcome, or all of
    them if only several repairs together change it. `fixed` names the repairing settings, `marker`
    gives them as arguments of a test's marker. `parts` holds the changed outcomes of pods, claims
    and rules, `gone` the violations that no longer occur.
    """

    release: str
    fixed: str
    marker: str
    numbers: tuple[str, ...]
    parts: Mapping[str, Mapping[str, str]]
    gone: Sequence[str]


def repair_of(ran: Ran, material: Material) -> Repair:
    """The repair that changes the outcome of a history. Raises InputError when there is none.

    It is the first later release whose repairs change an outcome. The release counts only if its
    repairs alone change the outcome too: new defaults of gates are no repair. If no release does,
    it is a switch that repairs a defect: one that changes an outcome, or else one that changes the
    messages of pods.
    """
    recorded = _outcome(ran)
    later = _later(profile_name(ran))
    for release in later:
        again = _run(ran, material, {"profile": release})
        numbers = _repaired(ran, again)
        if not numbers or _outcome(again) == recorded:
            continue
        if _without(ran, material, numbers) != recorded:
            alone = [each for each in numbers if _without(ran, material, (each,)) != recorded]
            marker = f'profile="{release}"'
            return _repair(ran, again, release, marker, tuple(alone) or numbers)
    alone = [each for each in _defects(ran) if _without(ran, material, (each,)) != recorded]
    for numbers in (tuple(alone), tuple(alone[:1])):
        again = _run(ran, material, _off(ran, numbers))
        if _outcome(again) != recorded:
            fixed = f"{profile_name(ran)} without {', '.join(numbers)}"
            marker = f"quirks={[f'{each}=off' for each in numbers]}".replace("'", '"')
            return _repair(ran, again, fixed, marker, numbers)
    messages = StoryRun(ran).messages
    for number in _defects(ran):
        again = _run(ran, material, _off(ran, (number,)))
        if (other := StoryRun(again).messages) != messages:
            fixed = f"{profile_name(ran)} without {number}"
            repair = _repair(ran, again, fixed, f'quirks=["{number}=off"]', (number,))
            return replace(repair, parts={"messages": other})
    after = f"no release after {profile_name(ran)}" if later else "no later release"
    raise InputError(
        f"{after} and no switch repairs a defect that changes the outcome of a pod, a claim "
        "or a rule here, or the message of a pod",
        place="--expect",
        cure="leave it out, or give predicates that must not be shown",
    )


def _repair(ran: Ran, again: Ran, fixed: str, marker: str, numbers: tuple[str, ...]) -> Repair:
    before, after = _outcome(ran), _outcome(again)
    return Repair(
        release=profile_name(ran),
        fixed=fixed,
        marker=marker,
        numbers=numbers,
        parts=before.differing(after),
        gone=before.violations_ended_in(after),
    )


def _outcome(ran: Ran) -> Outcome:
    run = StoryRun(ran)
    return Outcome(
        pods=run.pods, claims=run.claims, rules=run.rules, violations=tuple(run.violations)
    )


def _defects(ran: Ran) -> list[str]:
    """The known defects of the control plane that are present, by their switches."""
    on = {
        name.removeprefix(_QUIRK)
        for name, value in sides.switches_of(ran.side).items()
        if name.startswith(_QUIRK) and value == "on"
    }
    repaired = [incident_files.read(name).incident.repaired for name in incident_files.names()]
    known = {
        name
        for each in repaired
        if each is not None
        for name, is_on in each.quirks.items()
        if not is_on
    }
    return sorted(on & known)


def profile_name(ran: Ran) -> str:
    """The release as which a history was decided."""
    profile = profiles.from_settings(ran.info.settings)
    return profile.patch or profile.version


def _later(release: str) -> list[str]:
    """The later releases that can be imitated, oldest first."""
    ordered: list[str] = []
    for version in profiles.VERSIONS:
        ordered += [patch for patch, minor in profiles.PATCHES.items() if minor == version]
        ordered.append(version)
    return ordered[ordered.index(release) + 1 :]


def _run(ran: Ran, material: Material, changes: JsonObject) -> Ran:
    info = msgspec.structs.replace(ran.info, settings={**ran.info.settings, **changes})
    return Runner(material, info, Engines()).run(ran.candidate)


def _without(ran: Ran, material: Material, numbers: Sequence[str]) -> Outcome:
    """The outcome when only these defects are repaired."""
    return _outcome(_run(ran, material, _off(ran, numbers)))


def _off(ran: Ran, numbers: Sequence[str]) -> JsonObject:
    return {"quirks": {**ran.info.settings.get("quirks", {}), **dict.fromkeys(numbers, False)}}


def _repaired(before: Ran, after: Ran) -> tuple[str, ...]:
    """The defects that the first run has and the second has not."""
    old, new = sides.switches_of(before.side), sides.switches_of(after.side)
    return tuple(
        name.removeprefix(_QUIRK)
        for name, value in old.items()
        if name.startswith(_QUIRK) and value == "on" and new.get(name) == "off"
    )
