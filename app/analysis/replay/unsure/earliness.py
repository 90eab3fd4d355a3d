"""The acts of a recording that came before the reason for them.

A replay at the recorded pace only waits. If the recording has an act before the reason for it, the
act is made here when the reason occurs, and both sides have it. So the reason of each act is
compared with the recorded instant. The reason is the write after which the controller here first
had to look at the key again. The order of writes with versions does not depend on clocks. Parity:
controllers.md 2.2, 2.3, 5 and 7.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from app.analysis.replay.acts import Act
from app.analysis.replay.instants import is_derived
from app.analysis.replay.lateness import PacedRun
from app.analysis.replay.traces import Step, Trace
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE
from app.domain.log import Event, ObjectKey
from app.domain.log.records import Loss
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """An act about an object that came before its reason, a write about another object."""

    key: ObjectKey
    uid: str
    step: Step
    came: Instant
    cause: Event
    caused: Instant

    @property
    def text(self) -> str:
        """The act as text, for reports."""
        return (
            f"came at {timestamps.micro_text(self.came)}, before its reason: {self.cause.key} at "
            f"revision {self.cause.revision}"
        )


def early_acts(
    made: PacedRun,
    recorded: Trace,
    again: Trace,
    acts: Iterable[Act],
    known: Mapping[Instant, Event],
) -> Iterator[Early]:
    """The acts, besides attempts, that the recording has before the reason that the run had.

    `known` has the events of the recording by the instants at which others could see them. Acts
    that both sides made are compared, up to the first difference of each object.
    """
    by_step: dict[tuple[str, int], Act] = {(act.event.uid, act.event.revision): act for act in acts}
    for uid, steps in recorded.writes.items():
        for there, here in zip(steps, again.writes.get(uid, ()), strict=False):
            if there.facts != here.facts or there.writer != here.writer:
                break
            act = by_step.get((uid, there.revision))
            if act is None or act.is_guessed or here.time <= act.known:
                continue
            looks = chain(
                made.looks_for(again, uid, here.time), made.looks_within(here.key, here.time)
            )
            caused = min((look.first for look in looks), default=act.known)
            cause = known.get(caused)
            if caused <= act.known or cause is None or _may_be_swapped(act, cause, caused):
                continue
            yield Early(
                key=act.event.key,
                uid=uid,
                step=there,
                came=act.known,
                cause=cause,
                caused=caused,
            )


def _may_be_swapped(act: Act, cause: Event, caused: Instant) -> bool:
    """Whether only times give the order of the two, and clocks may differ by more than these.

    A history of redra shows what a controller had seen. What has the same time as its write may be
    due at that time by itself, also in a log that dates both answers alike.
    """
    if act.event.stamp.time == cause.stamp.time and (act.seen is not None or _is_tied(act, caused)):
        return True
    is_guessed = any(
        event.stamp.origin is not None and Loss.NO_RV in event.stamp.origin.losses
        for event in (act.event, cause)
    )
    return is_guessed and caused - act.known < CLOCK_TOLERANCE


def _is_tied(act: Act, caused: Instant) -> bool:
    """Whether a log dates the answer to an act itself, and no earlier than its reason came.

    The time of a write that was answered after a later one is that of the later one.
    """
    event = act.event
    origin, time = event.stamp.origin, event.stamp.time
    is_dated = origin is not None and not is_derived(event) and origin.answered in (0, time)
    return is_dated and act.known < caused <= time
