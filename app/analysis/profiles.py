"""What each profile stands for, as tables: quirks, gates and served versions of a release.

The reference page and `redra profiles` print these rows, which come from the code that acts on
them.
"""

from dataclasses import dataclass, fields

from app.domain.allocation import Quirks
from app.domain.controllers import releases
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFacts:
    """One profile. `release` is the minor release whose gates and versions it has.

    `quirks` and `gates` tell for every known name whether it is on by default. `versions` has the
    served versions, preferred first, with these gates, of each kind that is not served alike in all
    releases or that a gate decides about; none where the kind is not served.
    """

    name: str
    release: str
    is_default: bool
    quirks: dict[str, bool]
    gates: dict[str, bool]
    versions: dict[str, tuple[str, ...]]


def names() -> tuple[str, ...]:
    """Every profile, oldest first; patch releases stand behind their minor release."""
    known = {*profiles.VERSIONS, *profiles.PATCHES}
    return tuple(sorted(known, key=lambda name: [int(part) for part in name.split(".")]))


def facts_of(name: str) -> ProfileFacts:
    """What the profile stands for. Raises InputError, naming those there are."""
    chosen = Profile(version=name)
    return ProfileFacts(
        name=name,
        release=chosen.version,
        is_default=name == profiles.DEFAULT_VERSION,
        quirks=_quirks(chosen),
        gates={gate: chosen.enabled(gate) for gate in profiles.GATES},
        versions={
            kind.kind: tuple(version for _, version in registry.served_versions(kind, chosen))
            for kind in _varying_kinds()
        },
    )


def _quirks(chosen: Profile) -> dict[str, bool]:
    controllers = releases.quirks_of(chosen)
    allocator = releases.allocator_quirks_of(chosen)
    quirks = {one.name: bool(getattr(controllers, one.name)) for one in fields(ControllerQuirks)}
    return quirks | {one.name: bool(getattr(allocator, one.name)) for one in fields(Quirks)}


def _varying_kinds() -> list[Kind]:
    releases_only = [Profile(version=version) for version in profiles.VERSIONS]
    every_gate = Profile(gates=dict.fromkeys(profiles.GATES.keys() - profiles.FIXED.keys(), True))
    kinds = sorted(registry.served_kinds(every_gate), key=lambda kind: kind.kind)
    return [
        kind
        for kind in kinds
        if kind.gate
        or len({registry.served_versions(kind, chosen) for chosen in releases_only}) > 1
    ]
