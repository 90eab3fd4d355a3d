"""Recorded states and instants that are impossible, whatever the result of a replay."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from anyio import lowlevel

from app.analysis.recordings import uncertainty
from app.analysis.replay.lateness import (
    Delay,
    FirstAttempt,
    PacedRun,
    Silences,
    late_acts,
    late_attempts,
)
from app.analysis.replay.overtaken import PassedOver, late_seconds
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.recording import Recording
from app.analysis.replay.unsure import dependence
from app.analysis.replay.unsure.dependence import Read
from app.analysis.replay.unsure.earliness import Early
from app.analysis.replay.unsure.impossible import Impossible
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.stalled_bindings import StalledBindings
from app.analysis.verify.parts import Deciders
from app.domain.log import HistoryInfo, Revision
from app.domain.log.doubts import NEVER_SEEN, TIMES
from app.domain.objects.profile import Profile
from app.ports import EventLog
from app.service.replays import replaying
from app.service.replays.replaying import ReplayBounds
from app.service.replays.verifying import switches_of


def violations_of(
    recording: Recording, facts: Impossible | None, mistimed: Sequence[Delay | Early | PassedOver]
) -> Mapping[str, str]:
    """The recorded states and instants that are impossible, by the name of the object."""
    broken = {} if facts is None else facts.broken()
    keys = recording.trace.keys
    return {
        **{str(key): problem for key, problem in recording.contradictory.items()},
        **{str(each.key): each.text for each in mistimed if not _is_unsure(each)},
        **{str(key): problem for key, problem in broken.items()},
        **{str(keys.get(uid, uid)): problem for uid, problem in recording.overused.items()},
    }


SILENT = "whether an act came too late: for more than a minute nobody wrote anything"
"""The reason why a delay was not compared with what a controller may take."""


UNEXPLAINED = "whether an eviction came too early: no line shows the taint that it would need"
"""The reason why an eviction was not compared with the taints."""


def unsure_of(
    facts: Impossible | None, mistimed: Sequence[Delay | Early | PassedOver]
) -> Mapping[str, int]:
    """The delays that may be those of an outage, and doubtful evictions, counted by reason."""
    counts = {
        SILENT: sum(map(_is_unsure, mistimed)),
        UNEXPLAINED: 0 if facts is None else facts.doubtful_evictions,
    }
    return {reason: count for reason, count in counts.items() if count}


def _is_unsure(each: Delay | Early | PassedOver) -> bool:
    return isinstance(each, Delay) and not each.is_sure


def delays_of(
    recording: Recording,
    pace: RecordedPace,
    made: PacedRun,
    seconds: Mapping[str, FirstAttempt] = MappingProxyType({}),
    unmade: Iterable[Delay] = (),
) -> Iterator[Delay]:
    """The delays in a recording that nothing explains, given a run at its pace.

    `unmade` are the delays of attempts that were due and not made.
    If something is missing or a clock was wrong, a delay proves nothing and is left out, and so are
    single acts whose times contradict others.
    """
    lacks, keys = recording.lacks, recording.trace.keys
    odd = lacks.odd_times
    if odd.are_everywhere or lacks.kinds:
        return
    acts = [each for each in recording.acts if each.event.revision not in odd.revisions]
    paced = [each for each in made.acts if each.act.event.revision not in odd.revisions]
    silences = _silences(recording)
    late = late_acts(paced, acts, recording.refusals, silences)

    def late_of(attempts: Mapping[str, FirstAttempt]) -> Iterator[Delay]:
        ranks, firsts = recording.ranks, made.firsts
        return late_attempts(attempts, firsts, ranks, keys, pace.waits, acts, silences)

    stalled = StalledBindings(acts, recording.refusals, pace.waits, silences).delays()
    tried = chain(late_of(made.firsts), late_seconds(seconds, late_of), unmade, stalled)
    for delay, read in chain(((each, _OF_ACTS) for each in late), ((each, None) for each in tried)):
        uids = dependence.beside(delay.uid, recording.trace)
        about = {delay.key, *(keys[uid] for uid in uids & keys.keys())}
        if odd.concern(uids, about, delay.due, read):
            continue
        if lacks.omissions.before(delay.came, is_of_content=False):
            continue
        if not lacks.about({delay.uid}, {delay.key}, delay.due, delay.came):
            yield delay


def _silences(recording: Recording) -> Silences:
    """The times in which the recording has no request of anybody."""
    sent = (act.requested for act in recording.acts)
    refused = (each.at for each in recording.refusals)
    return Silences(chain(recording.observations.instants(), sent, refused))


def sure_of(recording: Recording, early: Iterable[Early]) -> Iterator[Early]:
    """The acts before their reason, without those whose reason may be in a missing record."""
    if recording.lacks.kinds:
        return
    keys = recording.trace.keys
    for each in early:
        read, uids = dependence.of_act(each.step, recording.trace)
        about = {each.key, *(keys[uid] for uid in uids & keys.keys())}
        is_sure = dependence.is_because_of(each.step, each.cause, recording.trace)
        lacks = recording.lacks
        is_unread = bool(lacks.omissions.verb)
        if is_sure or not (is_unread or lacks.about(uids, about, each.came, each.caused, read)):
            yield each


_OF_ACTS = Read(dependence.TAINTS)
"""The possible reasons of an act besides its own pods and claims, other than attempts."""


async def judged(
    log: EventLog,
    history: HistoryInfo,
    until: Revision,
    deciders: Deciders,
    bounds: ReplayBounds,
    lacks: Lacks,
    profile: Profile,
    *,
    only_invariants: bool,
) -> Impossible:
    """The judge of the recorded facts up to `until`, or of invariants alone."""
    lacking = uncertainty.lacking(lacks.recorded)
    judge = Impossible(
        deciders,
        switches_of(profile, deciders.quirks, history.settings),
        lacking=lacking if lacks.odd_times.are_everywhere else lacking - {TIMES},
        never_seen=[doubt.kind for doubt in lacks.recorded if doubt.code == NEVER_SEEN],
        changed=lacks.changed_unseen,
    )
    for look in (judge.read_ahead,) if only_invariants else (judge.read_ahead, judge.take):
        async for page in replaying.pages(log, history, until, bounds):
            for event in page:
                look(event)
                event.forget_tree()
            await lowlevel.checkpoint()
    return judge
