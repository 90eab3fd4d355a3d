"""The continuation of a recording in a changed world: its later inputs after a change at a moment.

First the unchanged recording is decided again from the moment on, like in a decide replay. The
proofs of its differences are kept: the switches that its control plane had, and the results of
races. The run that agrees with the recording is the control. The changed world is the same run with
the changes, so that its differences follow from the changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from app.analysis.replay import differences
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.differences import Compared
from app.analysis.replay.readiness import Readiness
from app.analysis.replay.unapplied import Unapplied
from app.analysis.replay.unsure import ending
from app.analysis.replay.variants import Switches, Variant
from app.domain.log import CLOCKS, Actor, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.forks import INPUTS_END
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, RecordFact
from app.ports import EventLog
from app.service.replays.deciding.altered import Alteration
from app.service.replays.deciding.replay import Proofs, prover_of, runs_of
from app.service.replays.deciding.runs import ControlPlane, Runs
from app.service.replays.replaying import Progress, ReplayBounds, silent


class Planes(Protocol):
    """Makes the control planes of the recorded world and of the changed world."""

    def recorded(self, info: HistoryInfo) -> tuple[ControlPlane, Proofs]:
        """The control plane of the recording, and the proofs that may be tried to make it agree."""
        ...

    def altered(self, info: HistoryInfo, seed: int) -> ControlPlane:
        """The control plane of the changed world; uids that are not recorded follow from `seed`."""
        ...

    @property
    def bounds(self) -> ReplayBounds:
        """The bounds of reading and of runs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The control: the recording decided again, which agrees with it as far as can be proved.

    `unlike` are the pods and claims that are still placed or evicted differently; their differences
    in a changed world show nothing about the change. `absent` are the controllers that were not at
    work in the recording, by the short names of their users; they are at work in no world.
    """

    runs: Runs
    variant: Variant
    readiness: Readiness
    unlike: tuple[ObjectKey, ...]
    absent: frozenset[str] = frozenset()

    @property
    def switches(self) -> Switches:
        """The switches that a proof has found for the recorded control plane."""
        return self.variant.switches


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """The result: the events after the beginning, the number of inputs, and those left out.

    `unlike` is as in `Control`. `switches` are the switches that a proof has found for the recorded
    control plane, as text.
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
    """Decides a history again up to `until`, with the settings of `info`, and returns the control.

    Starts at `beginning`, or at the first event without one.
    """
    plane, proofs = planes.recorded(info)
    runs = await runs_of(log, info, until, plane, planes.bounds, progress, beginning)
    compare: Callable[..., Compared] = partial(
        differences.compare, schemas=plane.rules(Switches()).schemas
    )
    recorded = runs.recording.trace
    first = Variant()
    plain = await runs.run(first)
    if not info.was_decided_elsewhere:
        first = replace(first, absent=ending.absent(recorded, plain.trace, runs.end))
    if first.absent:
        plain = await runs.run(first)
    prover = prover_of(runs, compare, proofs, first)
    await prover.judge(plain.trace, compare(recorded, plain.trace).different)
    # Writes that were taken as recorded are not decisions; the changed world decides them itself.
    variant = replace(prover.variant, imposed=frozenset())
    run = await runs.run(variant, is_control=True)
    compared = compare(recorded, run.trace)
    unlike = differences.placed_otherwise(compared, recorded, run.trace, runs.recording.last)
    return Control(
        runs=runs,
        variant=variant,
        readiness=run.readiness,
        unlike=tuple(sorted(unlike.values())),
        absent=variant.absent,
    )


async def go_on(
    control: Control,
    beginning: Beginning,
    plane: ControlPlane,
    *,
    edits: Callable[[ObjectsReader], Sequence[Command]] | None,
    actor: Actor,
) -> Continued:
    """Continues the recorded inputs from `beginning`, under the control plane `plane`.

    Without `edits` nothing is changed. Raises Rejected and InputError for edits that cannot be
    made.
    """
    runs = replace(control.runs, beginning=beginning)
    # The settings of the changed world contain the switches.
    variant = replace(control.variant, switches=Switches())
    alteration = None
    if edits is not None:
        alteration = Alteration(edits=edits, actor=actor, control=control.readiness)
    run = await runs.run(variant, keep_events=True, plane=plane, alteration=alteration)
    # Time has passed up to here, even when nothing happened.
    end = RecordFact(type=EventType.CLOCK_ADVANCED, key=CLOCKS, body=dict(INPUTS_END))
    run.timeline.submit(end, actor=actor)
    return Continued(
        events=run.timeline.events,
        inputs=len(runs.recording.inputs),
        unapplied=tuple(sorted(run.unapplied, key=lambda each: each.revision)),
        unlike=control.unlike,
        switches=tuple(control.variant.switches.words()),
    )
