"""The shapes of the answers that pages show."""

from typing import Any

from pydantic import Field

from app.api.redra.models import Model


class FoundObject(Model):
    """An object, and the revision at which it shows what was looked for."""

    group: str
    resource: str
    namespace: str
    name: str
    revision: int


class HitList(Model):
    """Objects that a query may mean, the likeliest first."""

    query: str
    revision: int
    items: list[FoundObject]
    more: bool = Field(description="Whether there are others")


class TimelineEntries(Model):
    """What happened, the newest first: rows as in the view `timeline`, with the time as text."""

    history: str
    revision: int
    examined: int = Field(description="How far the log has been read")
    items: list[dict[str, Any]]
    next: int = Field(description="Give it as `before` to go on; 0: there is no more")


class ObjectField(Model):
    """A field of an object and who gave it its value."""

    path: str
    value: Any
    revision: int = Field(description="Revision of the write; 0: an older one than was looked at")
    actor: str
    agent: str


class FieldChange(Model):
    """A field that a write changed; null stands for a field that is not there."""

    path: str
    old: Any
    new: Any


class ObjectVersion(Model):
    """One write of an object, and its changes against the version before."""

    revision: int
    time: str
    type: str
    verb: str
    actor: str
    agent: str
    cause: int = Field(description="Revision that provoked it; 0 for none")
    changes: list[FieldChange]
    omitted: int = Field(description="Changed fields that are not listed")


class ObjectRelation(Model):
    """Another object, what it is to this one, and whether it exists."""

    relation: str
    group: str
    resource: str
    namespace: str
    name: str
    exists: bool


class ObjectHistory(Model):
    """An object with its fields, versions (the newest first) and relations."""

    group: str
    resource: str
    namespace: str
    name: str
    revision: int
    exists: bool
    fields: list[ObjectField]
    versions: list[ObjectVersion]
    relations: list[ObjectRelation]
    older: bool = Field(description="Whether there are versions before those that are listed")


class LaneState(Model):
    """A state of a lane; `end` is 0 and `ended` empty while it lasts."""

    state: str
    label: str = Field(description="The node of a pod, the claim that holds a device")
    begin: int
    began: str
    end: int
    ended: str
    count: int = Field(default=1, description="More than 1: so many states shown as one")


class LaneMark(Model):
    """Something that happened to the object of a lane."""

    revision: int
    time: str
    kind: str
    text: str


class Lane(Model):
    """A pod, claim, device or node; depth 0 stands alone, 1 and 2 belong to the lane above."""

    group: str
    resource: str
    namespace: str
    name: str
    depth: int
    states: list[LaneState]
    marks: list[LaneMark]
    earlier: int = Field(default=0, description="Events before the first of these marks")


class LaneGap(Model):
    """A stretch that nobody recorded as a whole."""

    begin: int
    began: str
    end: int
    ended: str


class LaneList(Model):
    """Pods that began last first, each followed by its claims and their devices; then nodes."""

    history: str
    revision: int
    examined: int = Field(description="How far the log has been read")
    begin: str
    end: str
    lanes: list[Lane]
    gaps: list[LaneGap]
    omitted: int = Field(description="Pods, claims and nodes that did not fit")


class MappedDevice(Model):
    """A device: held, free, blocked (by a counter), tainted, or unusable with its pool."""

    name: str
    state: str
    holders: list[str]
    taints: list[str]
    sets: list[str] = Field(description="Counter sets that it draws on")
    lacks: list[str] = Field(description="Counters of which too little is left")
    is_shared: bool


class MappedCounter(Model):
    """How much of a counter devices in use consume."""

    set: str
    counter: str
    total: str
    used: str
    share: float


class MappedPool(Model):
    """A pool with its devices and counters."""

    driver: str
    pool: str
    node: str = Field(description="Empty for a pool that several nodes reach")
    generation: int
    state: str
    problem: str
    devices: list[MappedDevice]
    counters: list[MappedCounter]


class DeviceMap(Model):
    """Who holds what."""

    history: str
    revision: int
    pools: list[MappedPool]
    omitted: int = Field(description="Pools that did not fit")


class AttemptList(Model):
    """What the scheduler tried for a pod."""

    history: str
    revision: int
    namespace: str
    name: str
    created: str
    is_decided: bool = Field(description="Decisions of the log; else what a recording tells")
    items: list[dict[str, Any]] = Field(
        description="Attempts, the first one first: trigger, verdicts, causes, back-off"
    )
    omitted: int


class StartPace(Model):
    """How quickly pods started."""

    history: str
    revision: int
    examined: int
    count: int
    waiting: int
    steps: list[dict[str, Any]] = Field(description="Percentiles of each step in seconds")
    stretches: list[dict[str, Any]] = Field(description="Creation to binding over time")
    pods: list[dict[str, Any]] = Field(description="The slowest pods with their steps")
    omitted: int
    older: int = Field(description="Pods that came before those that were looked at")


class FittingCopies(Model):
    """How many more copies are placed, one after another."""

    history: str
    revision: int
    time: str
    items: list[dict[str, Any]] = Field(
        description="By subject: count, nodes, what limits it, and at_most by counting free devices"
    )
    waiting: int = Field(description="Pods that wait at that moment; they are not placed first")
    omitted: int = Field(description="Subjects that were not tried")
    certainty: str
    doubts: list[dict[str, Any]]


class Capacities(Model):
    """What fits, and what fitted at moments before."""

    history: str
    revision: int
    time: str
    moments: list[dict[str, Any]] = Field(
        description="Oldest first: classes with the largest claim that fits, counters with what is "
        "stranded"
    )
    missing: int = Field(description="Moments that asking again works out")
    certainty: str
    doubts: list[dict[str, Any]]


class Trace(Model):
    """Tracks of a trace viewer such as Perfetto."""

    traceEvents: list[dict[str, Any]] = Field(  # noqa: N815 - the format's own name
        description="Slices (X), arrows (s, f), counters (C) and names (M), sorted by time"
    )
    otherData: dict[str, Any] = Field(  # noqa: N815
        description="History, revision, begin and end, and how much was left out"
    )
    displayTimeUnit: str  # noqa: N815


class Finding(Model):
    """One thing that is wrong."""

    kind: str = Field(description="What it is about, such as WaitingPods")
    severity: str = Field(description="error, warning or notice")
    text: str = Field(description="One sentence")
    count: int = Field(description="How many objects are concerned")
    present: int = Field(description="How many of them at the moment of the answer")
    first: int = Field(description="Revision at which it shows first; 0 when that is not known")
    last: int = Field(description="Revision at which it shows last")
    objects: list[FoundObject] = Field(description="The newest of them")


class FindingList(Model):
    """What is wrong in a history, ranked."""

    history: str
    revision: int = Field(description="The revision of the answer")
    examined: int = Field(
        description="How far the log has been read; less than revision in a long history that is "
        "asked about for the first time"
    )
    items: list[Finding]
    omitted: int = Field(description="Findings of less weight, beyond the bound")
