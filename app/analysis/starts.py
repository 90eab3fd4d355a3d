"""The duration of pod starts: step by step, and as percentiles over time.

A start is the life of one pod from its creation on. Its steps follow one another: `claims` until
all of its claims exist, `devices` until all of them have devices, `binding` until it has a node,
`starting` until it runs. A step that ended before its predecessor takes no time.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import msgspec

from app.analysis import spans
from app.analysis.chronicle import Chronicle
from app.analysis.keeping import span_changes
from app.analysis.keeping.span_changes import Moment
from app.analysis.spans import Span
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, timestamps
from app.domain.values.timestamps import SECOND, Instant

STEPS = ("claims", "devices", "binding", "starting")
"""The steps of a start, in their order."""

_HAS_DEVICES = frozenset((span_changes.ALLOCATED, span_changes.RESERVED))
_IN_USE = frozenset((span_changes.RUNNING, span_changes.FINISHED))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceBounds:
    """The bounds of an answer: at most `pods_max` pods, the slowest ones, and `stretches` of time.

    Only the `scanned_max` pod names that began last are examined.
    """

    pods_max: int = 30
    scanned_max: int = 1_000
    stretches: int = 12


class StartStep(msgspec.Struct, frozen=True, kw_only=True):
    """One finished step of a start; `ended` is its last instant, at `revision`."""

    name: str
    seconds: float
    ended: str
    revision: Revision


class PodStart(msgspec.Struct, frozen=True, kw_only=True):
    """One pod's start; `waits_for` is the unfinished step, empty when the pod runs.

    `gone_before` is the step that a deleted pod never finished; its start lasted as long as it.
    """

    namespace: str
    name: str
    revision: Revision
    created: str
    seconds: float
    steps: tuple[StartStep, ...]
    waits_for: str = ""
    gone_before: str = ""

    @property
    def key(self) -> ObjectKey:
        """The pod."""
        return ObjectKey(*api_resources.PODS, self.namespace, self.name)


class StepPace(msgspec.Struct, frozen=True, kw_only=True):
    """The durations of a step: the number of pods that finished it, and percentiles in seconds."""

    name: str
    count: int
    p50: float
    p90: float
    p99: float
    most: float


class PaceStretch(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that got a node between two instants, with percentiles of their time to it."""

    begin: str
    end: str
    revision: Revision
    count: int
    p50: float
    p99: float


class StartPace(msgspec.Struct, frozen=True, kw_only=True):
    """The durations of pod starts, up to a revision.

    `pods` are the slowest ones; of equal durations, waiting ones come first. `omitted` counts the
    rest of `count`. `gone` counts those that were deleted before they ran. `older` counts the pod
    names that began before those examined. `note` says if the log was not read to its end.
    """

    history: str
    revision: Revision
    examined: Revision
    count: int
    waiting: int
    steps: tuple[StepPace, ...]
    stretches: tuple[PaceStretch, ...]
    pods: tuple[PodStart, ...]
    gone: int = 0
    omitted: int = 0
    older: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Start:
    """A start in instants; `steps` are the finished ones, with their ends."""

    key: ObjectKey
    created: Moment
    steps: tuple[tuple[str, Moment], ...]
    waits_for: str
    gone_before: str
    length: int

    def lengths(self) -> Iterator[tuple[str, int]]:
        """The duration of each step."""
        before = self.created
        for step, moment in self.steps:
            yield step, max(0, moment[1] - before[1])
            before = moment


def of(
    history: str,
    chronicle: Chronicle,
    until: Revision,
    now: Instant,
    *,
    namespace: str = "",
    name: str = "",
    bounds: PaceBounds = PaceBounds(),
) -> StartPace:
    """The start durations of pods of a namespace, with `name` in their name; empty: all."""
    keys, count = _last_begun(chronicle, until, namespace, name, bounds.scanned_max)
    starts = [start for key in keys for start in _starts(chronicle, key, until, now)]
    slowest = sorted(starts, key=lambda one: (-one.length, not one.waits_for, one.created))
    return StartPace(
        history=history,
        revision=until,
        examined=Revision(min(chronicle.revision, until)),
        note=chronicle.unread(until),
        count=len(starts),
        waiting=sum(bool(one.waits_for) for one in starts),
        gone=sum(bool(one.gone_before) for one in starts),
        steps=tuple(_paces(starts)),
        stretches=tuple(_stretches(starts, bounds.stretches)),
        pods=tuple(_shown(one) for one in slowest[: bounds.pods_max]),
        omitted=max(0, len(starts) - bounds.pods_max),
        older=count - len(keys),
    )


def in_steps(
    chronicle: Chronicle,
    until: Revision,
    now: Instant,
    *,
    namespace: str = "",
    name: str = "",
    bounds: PaceBounds = PaceBounds(),
) -> Iterator[None]:
    """The steps in which the states of the pods are worked out that `of` looks at."""
    keys, _ = _last_begun(chronicle, until, namespace, name, bounds.scanned_max)
    for key in keys:
        for _ in _starts(chronicle, key, until, now):
            pass
        yield


def _last_begun(
    chronicle: Chronicle, until: Revision, namespace: str, name: str, count_max: int
) -> tuple[Sequence[ObjectKey], int]:
    """The pods of a namespace, with `name` in their name, that began last, and how many did."""
    states = chronicle.states
    begun = states.count_begun(api_resources.PODS, until)
    if not namespace and not name:
        numbers = range(max(0, begun - count_max), begun)
        return [states.begun_key(api_resources.PODS, number) for number in numbers], begun
    keys: deque[ObjectKey] = deque(maxlen=count_max)
    count = 0
    for key in islice(states.begun_keys(api_resources.PODS), begun):
        if namespace in ("", key.namespace) and name in key.name:
            keys.append(key)
            count += 1
    return [*keys], count


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed; 0 for none."""
    if not sorted_values:
        return 0.0
    place = -(-len(sorted_values) * share // 1)
    return sorted_values[max(0, int(place) - 1)]


def _starts(
    chronicle: Chronicle, key: ObjectKey, until: Revision, now: Instant
) -> Iterator[_Start]:
    before = Revision(0)
    for life in _lives(spans.up_to(chronicle.states.lane(key), until)):
        yield _start(chronicle, key, life, until, now, after=before)
        before = until if life[-1].end is None else life[-1].end[0]


def _lives(lane: Sequence[Span]) -> Iterator[list[Span]]:
    """The spans of each pod of that name: a deleted pod leaves a gap, or an end."""
    life: list[Span] = []
    for span, following in pairwise((*lane, None)):
        assert span is not None, "only the last one is missing"
        life.append(span)
        if following is None or span.end != following.begin:
            yield life
            life = []


def _start(
    chronicle: Chronicle,
    key: ObjectKey,
    life: Sequence[Span],
    until: Revision,
    now: Instant,
    *,
    after: Revision,
) -> _Start:
    """The start of a pod; `after` is the end of the pod of its name before it."""
    created = life[0].begin
    bound = next((span.begin for span in life if span.label), None)
    runs = next((span.begin for span in life if span.state in _IN_USE), None)
    last = life[-1].end
    end = bound or last or (until, now)
    own_until = until if last is None else last[0]
    named, generated = chronicle.states.wanted_by(key, own_until)
    lanes = {
        claim: lane
        for claim in (*chronicle.states.claims_of(key, own_until, after=after), *named)
        if (lane := spans.up_to(chronicle.states.lane(claim), until)) and lane[0].begin[0] <= end[0]
    }
    claims = lanes.values()
    # Claims of an earlier pod of this name have ended before this one was created.
    own = sum(lane[-1].end is None or lane[-1].end > created for lane in claims)
    wanted = {*named}
    is_short = len(lanes.keys() & wanted) < len(wanted) or own < len(wanted) + generated
    made = _latest((_since(lane, frozenset(), end[0]) for lane in claims), created)
    if is_short and bound is None:
        # A pod with a node had its claims, whether they were recorded or not.
        made = None
    devices = _latest((_since(lane, _HAS_DEVICES, end[0]) for lane in claims), created)
    steps: list[tuple[str, Moment]] = []
    before, waits_for, gone_before = created, "", ""
    for step, moment in zip(STEPS, (made, devices, bound, runs), strict=True):
        if moment is None:
            # A pod that was deleted before this step waits no longer.
            waits_for, gone_before = ("", step) if last is not None else (step, "")
            break
        before = max(before, moment)
        steps.append((step, before))
    final = before[1]
    if waits_for:
        final = now
    elif gone_before and last is not None:
        final = last[1]
    length = max(0, final - created[1])
    return _Start(key, created, tuple(steps), waits_for, gone_before, length)


def _shown(start: _Start) -> PodStart:
    lengths = dict(start.lengths())
    return PodStart(
        namespace=start.key.namespace,
        name=start.key.name,
        revision=start.created[0],
        created=timestamps.micro_text(start.created[1]),
        seconds=start.length / SECOND,
        steps=tuple(
            StartStep(
                name=step,
                seconds=lengths[step] / SECOND,
                ended=timestamps.micro_text(moment[1]),
                revision=moment[0],
            )
            for step, moment in start.steps
        ),
        waits_for=start.waits_for,
        gone_before=start.gone_before,
    )


def _since(lane: Sequence[Span], states: frozenset[str], until: Revision) -> Moment | None:
    """The time since which a claim was in one of the states without interruption, as of a revision.

    Without states: since when it exists.
    """
    since: Moment | None = None
    before: Span | None = None
    for span in lane:
        if span.begin[0] > until:
            break
        is_another = before is not None and before.end != span.begin
        if states and span.state not in states:
            since = None
        elif since is None or is_another:
            since = span.begin
        before = span
    return since


def _latest(moments: Iterable[Moment | None], created: Moment) -> Moment | None:
    """The last of the moments; the creation if there are none; None if one is missing."""
    latest = created
    for moment in moments:
        if moment is None:
            return None
        latest = max(latest, moment)
    return latest


def _paces(starts: Sequence[_Start]) -> Iterator[StepPace]:
    by_step: dict[str, list[float]] = {step: [] for step in STEPS}
    for start in starts:
        for step, length in start.lengths():
            by_step[step].append(length / SECOND)
    for step, lengths in by_step.items():
        seconds = sorted(lengths)
        yield StepPace(
            name=step,
            count=len(seconds),
            p50=percentile(seconds, 0.5),
            p90=percentile(seconds, 0.9),
            p99=percentile(seconds, 0.99),
            most=seconds[-1] if seconds else 0.0,
        )


def _stretches(starts: Sequence[_Start], count: int) -> Iterator[PaceStretch]:
    """The time until binding, by the instant of binding, in stretches of equal length."""
    bound = sorted(
        (moment[1], moment[0], max(0, moment[1] - start.created[1]) / SECOND)
        for start in starts
        for step, moment in start.steps
        if step == "binding"
    )
    if not bound:
        return
    begin, length = bound[0][0], max(1, bound[-1][0] - bound[0][0])
    for number in range(count):
        first = begin + length * number // count
        last = begin + length * (number + 1) // count
        is_last = number == count - 1
        within = [one for one in bound if first <= one[0] < last or (is_last and one[0] == last)]
        seconds = sorted(one[2] for one in within)
        yield PaceStretch(
            begin=timestamps.micro_text(Instant(first)),
            end=timestamps.micro_text(Instant(last)),
            revision=max((one[1] for one in within), default=Revision(0)),
            count=len(within),
            p50=percentile(seconds, 0.5),
            p99=percentile(seconds, 0.99),
        )
