"""A recording that goes on in another world: its later inputs, upon what was changed at a moment.

Before anything is changed the recording is decided again from the moment on, as a decide replay
does it, and what proves its differences is kept: the switches that its control plane had, the
races as they ended there. The run that agrees with the recording is the control. The changed world
is the same run with the changes: what comes out otherwise follows from them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from app.analysis.replay import differences
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.differences import Aspect, Compared
from app.analysis.replay.readiness import Readiness
from app.analysis.replay.unapplied import Unapplied
from app.analysis.replay.variants import Switches, Variant
from app.domain.log import CLOCKS, Actor, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.forks import INPUTS_END
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, RecordFact
from app.ports import EventLog
from app.service.replays.deciding.altered import Alteration
from app.service.replays.deciding.replay import ControlPlane, Proofs, Runs, prover_of, runs_of
from app.service.replays.replaying import Progress, ReplayBounds, silent

_PLACEMENTS = frozenset((Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS))


class Planes(Protocol):
    """Makes the control planes of both worlds."""

    def recorded(self, info: HistoryInfo) -> tuple[ControlPlane, Proofs]:
        """The control plane of the recording, and what may be tried to make it agree."""
        ...

    def altered(self, info: HistoryInfo, seed: int) -> ControlPlane:
        """That of the changed world; uids of what has no recorded one follow from the seed."""
        ...

    @property
    def bounds(self) -> ReplayBounds:
        """Bounds of reading."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The recording, decided again from a moment on, so that it agrees as far as can be proved.

    `unlike` are the pods and claims that are placed or evicted otherwise even so: what they do in a
    changed world says nothing about the change.
    """

    runs: Runs
    variant: Variant
    readiness: Readiness
    unlike: tuple[ObjectKey, ...]

    @property
    def switches(self) -> Switches:
        """The switches that the recorded control plane was found to have had."""
        return self.variant.switches


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """What happened: the events after the beginning, the number of inputs, and those left out.

    `switches` are those that the control plane of the recording was found to have had, in words.
    """

    events: Sequence[Event]
    inputs: int
    unapplied: Sequence[Unapplied]
    unlike: Sequence[ObjectKey]
    switches: Sequence[str]


async def find_control(
    log: EventLog,
    info: HistoryInfo,
    beginning: Beginning | None,
    *,
    until: Revision,
    planes: Planes,
    progress: Progress = silent,
) -> Control:
    """Decide a history again up to `until`, with the settings of `info`.

    From `beginning` on where there is one, else from its first event.
    """
    plane, proofs = planes.recorded(info)
    runs = await runs_of(log, info, until, plane, planes.bounds, progress, beginning)
    compare: Callable[..., Compared] = partial(
        differences.compare, schemas=plane.rules(Switches()).schemas
    )
    plain = await runs.run(Variant())
    prover = prover_of(runs, compare, proofs, Variant())
    await prover.judge(plain.trace, compare(runs.recording.trace, plain.trace).different)
    # A write that was taken as recorded is no decision: in a changed world it need not be made.
    variant = replace(prover.variant, imposed=frozenset())
    run = await runs.run(variant)
    compared = compare(runs.recording.trace, run.trace)
    keys = {**run.trace.keys, **runs.recording.trace.keys}
    unlike = {keys[uid] for aspect, uid, _ in compared.different if aspect in _PLACEMENTS}
    return Control(
        runs=runs, variant=variant, readiness=run.readiness, unlike=tuple(sorted(unlike))
    )


async def go_on(
    control: Control,
    beginning: Beginning,
    plane: ControlPlane,
    *,
    edits: Callable[[ObjectsReader], Sequence[Command]] | None,
    actor: Actor,
) -> Continued:
    """The recorded inputs in the world that begins there, under that control plane.

    Without `edits` nothing is changed in it. Raises Rejected and InputError for edits that cannot
    be made.
    """
    runs = replace(control.runs, beginning=beginning)
    # The switches are in the settings of that world.
    variant = replace(control.variant, switches=Switches())
    alteration = None
    if edits is not None:
        alteration = Alteration(edits=edits, actor=actor, control=control.readiness)
    run = await runs.run(variant, keep_events=True, plane=plane, alteration=alteration)
    # So far went its time, whether anything happened or not.
    end = RecordFact(type=EventType.CLOCK_ADVANCED, key=CLOCKS, body=dict(INPUTS_END))
    run.timeline.submit(end, actor=actor)
    return Continued(
        events=run.timeline.events,
        inputs=len(runs.recording.inputs),
        unapplied=tuple(sorted(run.unapplied, key=lambda each: each.revision)),
        unlike=control.unlike,
        switches=tuple(control.variant.switches.words()),
    )
