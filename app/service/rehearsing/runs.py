"""One world of a rehearsal: the recorded inputs of a history, run under some settings."""

from dataclasses import dataclass, replace

from app.analysis.diff.sides import Side
from app.analysis.rehearse.admission import Admission
from app.analysis.replay.variants import Switches
from app.domain.log import Actor, HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects.rules import Rules
from app.service import diffing
from app.service.replays.deciding.altered import Alteration
from app.service.replays.deciding.continuing import Control, Planes
from app.service.replays.deciding.run import Run

_SELF = Actor(user="redra:rehearsal")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RehearsedWorld:
    """The results of the inputs; `admission` is the judgement of this world's API, if requested."""

    info: HistoryInfo
    rules: Rules
    run: Run
    side: Side
    admission: Admission | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worlds:
    """Makes worlds that differ only in their settings."""

    control: Control
    planes: Planes
    seed: int

    async def world(self, info: HistoryInfo, source: Rules | None = None) -> RehearsedWorld:
        """Run the recorded inputs under the settings of `info`.

        With `source`, the rules under which they were written, the API of this world judges each
        input.
        """
        control = self.control
        plane = self.planes.altered(info, self.seed)
        rules = plane.rules(Switches())
        alteration = Alteration(edits=lambda _: (), actor=_SELF, control=control.readiness)
        admission = None
        if source is not None:
            admission = Admission(source=source, target=rules)
            alteration = replace(alteration, admit=admission.admit)
        # The switches are part of the settings of that world.
        variant = replace(control.variant, switches=Switches())
        run = await control.runs.run(variant, keep_events=True, plane=plane, alteration=alteration)
        # Both worlds continue after the recording, until work in progress has ended.
        side = replace(
            diffing.side_of(info, run.timeline.events, release_of(info)), until=control.runs.last
        )
        return RehearsedWorld(info=info, rules=rules, run=run, side=side, admission=admission)


def release_of(info: HistoryInfo) -> str:
    """The release that a history imitates, with the patch level where it matters.

    A switched C24 is named as that switch, and makes no other release of it.
    """
    profile = profiles.from_settings({**info.settings, "quirks": {}})
    return profile.patch or profile.version
