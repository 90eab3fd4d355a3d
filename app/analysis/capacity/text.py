"""Answers about capacity as lines, and the words that pages also use."""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis import scheduler_messages
from app.analysis.capacity.answers import (
    CapacityCourse,
    CapacityMoment,
    ClassCapacity,
    CounterCapacity,
    DeviceCause,
    Fit,
    FitAnswer,
    FitTogether,
)
from app.analysis.recordings import uncertainty
from app.domain.allocation.reasons import causes
from app.domain.values import counts

NODES_SHOWN_MAX = 8
CAUSES_SHOWN_MAX = 6

ORDER = (
    "Copies are placed one after another as the scheduler would: another order or other choices "
    "could place more. Pods that wait already are not placed first, and nobody is evicted."
)
"""The meaning of the number of copies."""

_WORDS: Mapping[str, str] = {
    **causes.WORDS,
    causes.CauseKind.ALLOCATED: "allocated to others",
    causes.SUITABLE: "suitable alone, but not enough of them together",
}
"""The kinds of causes as words about devices that the next copy cannot have."""

_NEVER_CANDIDATES = ("selector", "other-node")
"""The causes of devices that were never candidates, which are shown last."""

_NOTHING = ("0", "")


def fit_lines(answer: FitAnswer) -> Iterator[str]:
    """The answer for a terminal."""
    yield f"as of revision {answer.revision}, {answer.time}"
    yield from uncertainty.lines(answer.doubts)
    for one in answer.items:
        yield head(one)
        if one.nodes:
            yield f"  on {nodes(one)}"
        for line in limit_lines(one):
            yield f"  {line}"
    if not answer.items:
        yield "there is no class and no template"
    if answer.together is not None:
        yield from together_lines(answer.together)
    if answer.omitted:
        was = counts.verb(answer.omitted, "was")
        yield f"… {answer.omitted} more {was} not tried; name one with -f, --class or --template"
    if answer.waiting:
        yield f"{_pods(answer.waiting)} already for devices and {_do(answer.waiting)} not count"
    yield ORDER


def head(one: Fit) -> str:
    """The number of copies as a sentence."""
    count = "at least " if one.limit.kind == "bound" else ""
    text = f"{one.subject}: {count}{one.count} more {counts.verb(one.count, 'fits')}"
    if one.at_most is not None and one.at_most > one.count and one.limit.kind != "bound":
        text += f"; counted alone, the free devices that match would do for {one.at_most}"
    return text


def together_lines(together: FitTogether) -> Iterator[str]:
    """The lines about all subjects at once: the sum, then each subject, and the nodes."""
    count = ("at least " if together.is_least else "") + str(together.count)
    fits = counts.verb(together.count, "fits")
    yield f"all at once, one of each in turn: {count} more {fits}; the numbers above do not add up"
    for one in together.subjects:
        yield f"  {one.count} of {one.subject}"
    if together.nodes:
        yield f"  on {nodes(together)}"


def nodes(one: Fit | FitTogether) -> str:
    """The nodes that get copies, those with the most first."""
    most = sorted(one.nodes, key=lambda item: (-item.count, item.node))
    shown = [f"{item.node} ({item.count})" for item in most[:NODES_SHOWN_MAX]]
    more = len(most) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def limit_lines(one: Fit) -> Iterator[str]:
    """The lines about the limit."""
    limit = one.limit
    match limit.kind:
        case "bound":
            yield limit.text
            return
        case "refused":
            yield f"the API refuses the next one: {limit.text}"
            return
    yield f"the next one: {scheduler_messages.of_nodes(limit.text)}"
    causes_there = _of_short_requests(limit.causes)
    near_first = sorted(causes_there, key=lambda cause: cause.cause in _NEVER_CANDIDATES)
    for cause in near_first[:CAUSES_SHOWN_MAX]:
        yield f"  {cause_text(cause)}"
    if (more := len(causes_there) - CAUSES_SHOWN_MAX) > 0:
        yield f"  … {counts.of(more, 'more cause')}; -o json has all of them"
    for pool in limit.pools:
        say = counts.verb(pool.count, "says")
        places = counts.of(pool.count, "node")
        yield f"  a pool cannot be used, as {places} {say}: {pool.problem}"
    if limit.victims:
        yield f"  the scheduler would evict {', '.join(limit.victims)} for it"


def _of_short_requests(counted: Sequence[DeviceCause]) -> Sequence[DeviceCause]:
    """The causes of the requests without a suitable device; of all if each request has some."""
    served = {(each.claim, each.request) for each in counted if each.cause == causes.SUITABLE}
    return [each for each in counted if (each.claim, each.request) not in served] or counted


def cause_text(cause: DeviceCause) -> str:
    """The number of devices with a cause, and the request."""
    what = _WORDS.get(cause.cause, cause.cause)
    about = f" ({cause.about})" if cause.about else ""
    devices, places = counts.of(cause.devices, "device"), counts.of(cause.nodes, "node")
    return f"request {cause.request}: {devices} {what}{about}, on {places}"


def capacity_lines(answer: CapacityCourse) -> Iterator[str]:
    """The present capacity in full, then the largest claims over time."""
    now = answer.present
    yield f"as of revision {answer.revision}, {answer.time}"
    yield from uncertainty.lines(answer.doubts)
    yield from (class_text(one) for one in now.classes)
    if not now.classes:
        yield "there is no device class"
    yield from (counter_text(one) for one in now.counters)
    if len(answer.moments) > 1:
        yield "over time, by revision: devices of the largest claim that fits, of those free"
        before, left_out = "", 0
        for moment in answer.moments:
            if (course := _course(moment)) != before:
                yield f"  {moment.time[:19].replace('T', ' ')} {moment.revision:>8}  {course}"
            else:
                left_out += 1
            before = course
        if left_out:
            has = counts.verb(left_out, "has")
            yield f"  {counts.of(left_out, 'more moment')} {has} the numbers of the one before"
    if answer.missing:
        moments = "1 moment is" if answer.missing == 1 else f"{answer.missing} moments are"
        yield f"{moments} not computed yet: repeat the request"


def class_text(one: ClassCapacity) -> str:
    """A class as a sentence."""
    largest = (
        f"the largest claim that fits has {_least(one)}{_devices(one.largest)}, on {one.node}"
        if one.largest
        else "not one device can be claimed"
    )
    split = " (not all of them go together)" if 0 < one.largest < one.free else ""
    return (
        f"class {one.name}: {one.free} of {_devices(one.devices)} free, "
        f"{one.allocatable} without a taint; {largest}{split}"
    )


def counter_text(one: CounterCapacity) -> str:
    """A counter as a sentence."""
    rest = f"counter {one.counter} of {one.driver}: {one.left} of {one.total} left"
    if one.stranded in _NOTHING:
        return f"{rest}, none of it stranded"
    return f"{rest}, {one.stranded} of it stranded (no free device can draw on it)"


def _least(one: ClassCapacity) -> str:
    return "at least " if one.is_least else ""


def _course(moment: CapacityMoment) -> str:
    parts: Sequence[str] = [
        f"{one.name} {_least(one)}{one.largest} of {one.free}" for one in moment.classes
    ]
    stranded = [
        f"{one.counter} {one.stranded}" for one in moment.counters if one.stranded not in _NOTHING
    ]
    classes = ", ".join(parts) or "no device class"
    return classes + ("; stranded " + ", ".join(stranded) if stranded else "")


def _devices(count: int) -> str:
    return counts.of(count, "device")


def _pods(count: int) -> str:
    return "1 pod waits" if count == 1 else f"{count} pods wait"


def _do(count: int) -> str:
    return counts.verb(count, "does")
