"""The release that repairs a known defect of a history, and what becomes of the pods there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.analysis.diff import sides
from app.analysis.minimise.material import Material
from app.bootstrap.engines import Engines
from app.bootstrap.handover.stories import StoryRun
from app.domain.errors import InputError
from app.domain.objects import profile as profiles
from app.domain.values.json_tree import JsonObject
from app.service.replays.trials import Ran, Runner

_QUIRK = "quirk "


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A release that decides the history otherwise because known defects are repaired there.

    `release` is what the history was decided as, `numbers` are those of the defects in the pages of
    behaviours: those that matter alone, or all if only several together do. `pods` are the pods'
    fates by name, under the release of the repair.
    """

    release: str
    fixed: str
    numbers: tuple[str, ...]
    pods: Mapping[str, str]


def repair_of(ran: Ran, material: Material) -> Repair:
    """The first later release whose repairs change what becomes of a pod. Raises InputError.

    A release counts only where its repairs alone do so too: new defaults of gates are no repair.
    """
    release = profile_name(ran)
    recorded = StoryRun(ran).pods
    for later in _later(release):
        again = _run(ran, material, {"profile": later})
        numbers = _repaired(ran, again)
        pods = StoryRun(again).pods
        if not numbers or pods == recorded:
            continue
        if _without(ran, material, numbers) != recorded:
            alone = [each for each in numbers if _without(ran, material, (each,)) != recorded]
            return Repair(release=release, fixed=later, numbers=tuple(alone) or numbers, pods=pods)
    raise InputError(
        f"no release after {release} repairs a defect that changes what becomes of a pod here",
        place="--expect",
        cure="leave it out, or name with --never what must not be shown",
    )


def profile_name(ran: Ran) -> str:
    """The release that a history was decided as."""
    profile = profiles.from_settings(ran.info.settings)
    return profile.patch or profile.version


def _later(release: str) -> list[str]:
    """The releases that can be imitated after another one, oldest first."""
    ordered: list[str] = []
    for version in profiles.VERSIONS:
        ordered += [patch for patch, minor in profiles.PATCHES.items() if minor == version]
        ordered.append(version)
    return ordered[ordered.index(release) + 1 :]


def _run(ran: Ran, material: Material, changes: JsonObject) -> Ran:
    info = msgspec.structs.replace(ran.info, settings={**ran.info.settings, **changes})
    return Runner(material, info, Engines()).run(ran.candidate)


def _without(ran: Ran, material: Material, numbers: Sequence[str]) -> Mapping[str, str]:
    """What becomes of the pods where these defects alone are repaired."""
    quirks = {**ran.info.settings.get("quirks", {}), **dict.fromkeys(numbers, False)}
    return StoryRun(_run(ran, material, {"quirks": quirks})).pods


def _repaired(before: Ran, after: Ran) -> tuple[str, ...]:
    """The defects that the one has and the other has not."""
    old, new = sides.switches_of(before.side), sides.switches_of(after.side)
    return tuple(
        name.removeprefix(_QUIRK)
        for name, value in old.items()
        if name.startswith(_QUIRK) and value == "on" and new.get(name) == "off"
    )
