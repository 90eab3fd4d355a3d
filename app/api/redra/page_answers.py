"""The shapes of the answers that pages show."""

from typing import Any

from pydantic import Field

from app.api.redra.models import Model


class FoundObject(Model):
    """An object, and the revision at which it matches the query."""

    group: str
    resource: str
    namespace: str
    name: str
    revision: int


class GoneObject(FoundObject):
    """A deleted object: the revision is that of its deletion."""

    time: str
    by: str = Field(description="The author of the deletion")


class HitList(Model):
    """Objects that a query may mean, the likeliest first."""

    query: str
    revision: int
    items: list[FoundObject]
    more: bool = Field(description="True if there are more")
    gone: list[GoneObject] = Field(description="Deleted objects that are not there again")


class TimelineEntries(Model):
    """Entries, the newest first: rows as in the view `timeline`, with the time as text."""

    history: str
    revision: int
    examined: int = Field(description="The last revision of the log that has been read")
    items: list[dict[str, Any]]
    next: int = Field(
        description="The value of `before` for the next page; 0: this is the last page"
    )
    note: str = Field(
        default="", description="That the log was not read to its end yet; empty if it was"
    )


class ObjectField(Model):
    """A field of an object, and the user who set its value."""

    path: str
    value: Any
    revision: int = Field(
        description="Revision of the write; 0: it is older than the range that was read"
    )
    actor: str
    agent: str


class FieldChange(Model):
    """A field that a write changed; null stands for an absent field."""

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
    cause: int = Field(description="Revision that caused it; 0: none")
    changes: list[FieldChange]
    omitted: int = Field(description="Number of changed fields that are not listed")


class ObjectRelation(Model):
    """Another object, its relation to this one, and whether it exists."""

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
    older: bool = Field(description="True if there are versions before the listed ones")


class LaneState(Model):
    """A state of a lane; `end` is 0 and `ended` empty while it lasts."""

    state: str
    label: str = Field(description="The node of a pod, the claim that holds a device")
    begin: int
    began: str
    end: int
    ended: str
    count: int = Field(
        default=1, description="If more than 1: the number of states that are shown as one"
    )


class LaneMark(Model):
    """An occurrence at the object of a lane."""

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
    earlier: int = Field(default=0, description="Number of Events before the first of these marks")


class LaneGap(Model):
    """A stretch of the recording with a gap."""

    begin: int
    began: str
    end: int
    ended: str


class LaneList(Model):
    """Pods, the newest first, each followed by its claims and their devices; then nodes."""

    history: str
    revision: int
    examined: int = Field(description="The last revision of the log that has been read")
    begin: str
    end: str
    lanes: list[Lane]
    gaps: list[LaneGap]
    omitted: int = Field(description="Pods, claims and nodes beyond the bound")
    note: str = Field(
        default="", description="That the log was not read to its end yet; empty if it was"
    )
    certainty: str = Field(description="sure, or unsure if the recording lacks content")
    doubts: list[dict[str, Any]] = Field(description="Losses of the recording, by kind")


class MappedDevice(Model):
    """A device: held, free, blocked (by a counter), tainted, or unusable with its pool."""

    name: str
    state: str
    holders: list[str]
    taints: list[str]
    sets: list[str] = Field(description="Counter sets that it draws on")
    lacks: list[str] = Field(description="Counters with too little left")
    is_shared: bool


class MappedCounter(Model):
    """The amount of a counter that devices in use consume."""

    set: str
    counter: str
    total: str
    used: str
    share: float


class MappedPool(Model):
    """A pool with its devices and counters."""

    driver: str
    pool: str
    node: str = Field(description="Empty for a pool that belongs to no single node")
    generation: int
    state: str
    problem: str
    devices: list[MappedDevice]
    counters: list[MappedCounter]


class DeviceMap(Model):
    """Pools and devices with their holders."""

    history: str
    revision: int
    pools: list[MappedPool]
    omitted: int = Field(description="Pools beyond the bound")
    certainty: str = Field(description="sure, or unsure if the recording lacks content")
    doubts: list[dict[str, Any]] = Field(description="Losses of the recording, by kind")


class AttemptList(Model):
    """The scheduler's attempts for a pod."""

    history: str
    revision: int
    namespace: str
    name: str
    created: str
    is_decided: bool = Field(
        description="True if the attempts are decisions of the log; false if "
        "they come from a recording"
    )
    items: list[dict[str, Any]] = Field(
        description="Attempts, the oldest first: trigger, verdicts, causes, back-off, repetitions"
    )
    omitted: int


class StartPace(Model):
    """The time that pods took to start."""

    history: str
    revision: int
    examined: int
    count: int
    waiting: int
    steps: list[dict[str, Any]] = Field(description="Percentiles of each step in seconds")
    stretches: list[dict[str, Any]] = Field(description="Creation to binding over time")
    pods: list[dict[str, Any]] = Field(description="The slowest pods with their steps")
    omitted: int
    older: int = Field(description="Number of pods older than those that were read")
    note: str = Field(
        default="", description="That the log was not read to its end yet; empty if it was"
    )


class FittingCopies(Model):
    """The number of copies that can be placed, one after another."""

    history: str
    revision: int
    time: str
    items: list[dict[str, Any]] = Field(
        description="For each subject: count, nodes, its limit, and at_most, which counts free "
        "devices"
    )
    waiting: int = Field(description="Pods that wait at that moment; they are not scheduled first")
    omitted: int = Field(description="Subjects that were not tried")
    certainty: str
    doubts: list[dict[str, Any]]


class Capacities(Model):
    """The largest claims that fit now, and at earlier moments."""

    history: str
    revision: int
    time: str
    moments: list[dict[str, Any]] = Field(
        description="The oldest first: classes with the largest claim that fits, counters with "
        "the stranded amount"
    )
    missing: int = Field(description="Number of moments that a repeated request computes")
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
    """A finding: a problem in the history."""

    kind: str = Field(description="The subject of the finding, such as WaitingPods")
    severity: str = Field(description="error, warning or notice")
    text: str = Field(description="One sentence")
    count: int = Field(description="Number of objects concerned")
    present: int = Field(description="Number of objects concerned at the moment of the answer")
    first: int = Field(description="The first revision that shows it; 0: not known")
    last: int = Field(description="The last revision that shows it")
    objects: list[FoundObject] = Field(description="The newest of them")
    causes: list[str] = Field(
        default=[], description="For pods that wait for devices: the failing requests, with causes"
    )


class FindingList(Model):
    """The findings of a history, ranked."""

    history: str
    revision: int = Field(description="The revision of the answer")
    examined: int = Field(description="The last revision of the log that has been read")
    items: list[Finding]
    omitted: int = Field(description="Number of findings of lower severity beyond the bound")
    note: str = Field(
        default="",
        description="That the log was not read to its end in the time that a request waits "
        "(`REDRA_FINDINGS_WAIT_SECONDS`); it is read on, for the next request",
    )
    known_defects: list[dict[str, Any]] = Field(
        alias="knownDefects",
        description="Known defects and traps that show, like those of `scan`, with severities",
    )
    known_defects_note: str = Field(
        default="",
        alias="knownDefectsNote",
        description="Why there may be more known defects; begins with `not complete` if the scan "
        "goes on, for the next request",
    )
    certainty: str = Field(description="sure, or unsure if the recording lacks content")
    doubts: list[dict[str, Any]] = Field(description="Losses of the recording, by kind")
