"""The two sides of a comparison, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from app.analysis.views import compiler_of, features_of
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import Event, ObjectKey, Revision
from app.domain.objects.profile import GATES, RELEASE_RULES, Profile
from app.domain.values.timestamps import SECOND, Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One history from the common revision of both on.

    `start` are the last events of the objects that exist at `common`; `created` are the revisions
    of creation of patches among them that were changed since. `events` are the later ones,
    in order, up to `revision` and `until`; `left_out` counts those after that. `shift` is
    subtracted from its instants to convert them to the time of the other side. `beyond` is what a
    recording has after the end of the shorter one with which it is compared; `until` is that end.
    With `is_finishing`, `beyond` is only the work that was under way at that end: no input came
    after it. `was_decided_elsewhere` is that of its history.
    """

    name: str
    profile: Profile
    options: ControllerOptions
    start: Sequence[Event] = ()
    created: Mapping[ObjectKey, Revision] = field(default_factory=dict)
    common: Revision = Revision(0)
    events: Sequence[Event] = ()
    revision: Revision = Revision(0)
    until: Instant = Instant(0)
    shift: int = 0
    left_out: int = 0
    beyond: Sequence[Event] = ()
    is_finishing: bool = False
    was_decided_elsewhere: bool = False

    @property
    def rules(self) -> SchedulerRules:
        """The rules by which its scheduler decides."""
        return SchedulerRules(
            gates=self.profile,
            features=features_of(self.profile),
            compiler=compiler_of(self.profile),
            quirks=registry.quirks_of(self.profile, self.options),
            allocator_quirks=registry.allocator_quirks_of(self.profile, self.options),
            binding_timeout=self.options.binding_timeout,
            checks_volumes=self.options.checks_volumes,
        )

    def instant(self, time: Instant) -> Instant:
        """An instant of this side in the time of the comparison."""
        return Instant(time - self.shift)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffBounds:
    """The bounds of a comparison.

    Decisions within `within` microseconds of each other count as simultaneous. `explained_max`
    differences are traced to their causes, each on `nodes_max` nodes in addition to the two chosen.
    Lists have `listed_max` entries; all are counted.
    """

    within: int = SECOND
    explained_max: int = 1_000
    nodes_max: int = 64
    listed_max: int = 10_000


def switches_of(side: Side) -> Mapping[str, str]:
    """The release, quirks and gates in effect, named like the options of the command line."""
    profile = side.profile
    quirks = registry.quirks_of(profile, side.options)
    allocator = registry.allocator_quirks_of(profile, side.options)
    return {
        "profile": profile.patch or profile.version,
        **{
            f"quirk {each.name}": "on" if getattr(values, each.name) else "off"
            for values in (quirks, allocator)
            for each in fields(values)
        },
        **{f"rule {rule}": "on" if profile.follows(rule) else "off" for rule in RELEASE_RULES},
        **{f"gate {gate}": str(profile.enabled(gate)).lower() for gate in GATES},
    }
