"""The data types of answers about capacity.

Amounts of counters are Kubernetes quantities as texts, instants RFC 3339 texts with microseconds.
"""

import msgspec

from app.domain.log import Revision
from app.domain.log.doubts import Doubt


class NodeCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of copies on a node."""

    node: str
    count: int


class DeviceCause(msgspec.Struct, frozen=True, kw_only=True):
    """The first cause that excludes devices on refusing nodes, for one request of a claim.

    `cause` is a kind of cause such as `allocated`, `counters` or `taint`, or `suitable` for devices
    that no cause excludes by itself. `about` is the subject of the cause, such as the taint.
    `devices` adds up what the nodes say: one that several nodes see counts once for each of them.
    """

    claim: str = ""
    request: str
    cause: str
    devices: int
    nodes: int
    about: str = ""


class UnusablePools(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pools that nodes see and cannot use for the same reason."""

    problem: str
    count: int


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why there is no further copy.

    `kind` is `unschedulable` (no node takes it), `refused` (the API refuses it, for example for a
    quota), `left` (the scheduler ignores it: it is gated, or for another one), `error`, or `bound`
    (no more were tried). `text` is upstream's message. `nodes` counts nodes by their message,
    `causes` the devices of nodes that refuse it for devices, `pools` those that these nodes cannot
    use at all. `victims` are pods that the scheduler would evict for it.
    """

    kind: str
    text: str
    nodes: dict[str, int] = {}
    causes: tuple[DeviceCause, ...] = ()
    pools: tuple[UnusablePools, ...] = ()
    victims: tuple[str, ...] = ()


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The number of further copies of one pod with its claims that are placed one after another.

    The number is what the scheduler does, attempt by attempt, where every copy takes what its
    attempt chose; another order or other choices could place more. `at_most` is an upper bound for
    any choice: the copies that all matching free devices could serve regardless of their place;
    None where devices are shared, or chosen among alternatives.
    """

    subject: str
    count: int
    nodes: tuple[NodeCount, ...]
    limit: Limit
    at_most: int | None = None


class SubjectCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of copies of one subject among those of several."""

    subject: str
    count: int


class FitTogether(msgspec.Struct, frozen=True, kw_only=True):
    """The number of copies of several subjects that fit at once, one of each placed in turn.

    A subject is left out from its first copy on that is not placed. `count` is the sum over the
    subjects, and over the nodes. With `is_least` a bound ended the search.
    """

    count: int
    subjects: tuple[SubjectCount, ...]
    nodes: tuple[NodeCount, ...]
    is_least: bool = False


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The remaining capacity as of a revision; `omitted` subjects were not tried.

    Each item is what fits of that alone; `together` is what fits of all items at once, None for
    fewer than two. The `waiting` pods at that moment are not placed first.
    """

    history: str
    revision: Revision
    time: str
    items: tuple[Fit, ...]
    together: FitTogether | None = None
    waiting: int = 0
    omitted: int = 0
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()


class ClassCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A device class: its devices in usable pools, those without a taint, and the free ones.

    Free devices have no taint and no holder, or, if shared, some of each capacity left. They are on
    an existing node, and their counters suffice for each alone.

    `largest` is the number of devices in the largest claim of the class that still fits, on `node`.
    With `is_least` the search was given up, and a larger one may exist.
    """

    name: str
    devices: int
    allocatable: int
    free: int
    largest: int
    node: str = ""
    is_least: bool = False


class CounterCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A counter over all pools of a driver: the total, the rest, and the stranded part of the rest.

    The rest of a counter set is stranded if no device of its pool outside claims can draw on it.
    """

    driver: str
    counter: str
    total: str
    left: str
    stranded: str


class CapacityMoment(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity at one moment."""

    revision: Revision
    time: str
    classes: tuple[ClassCapacity, ...]
    counters: tuple[CounterCapacity, ...]


class CapacityCourse(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity as of a revision, and at sampled earlier moments, oldest first.

    `missing` moments are not computed yet: the next request continues. The last moment is that of
    the revision itself.
    """

    history: str
    revision: Revision
    time: str
    moments: tuple[CapacityMoment, ...]
    missing: int = 0
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()

    @property
    def present(self) -> CapacityMoment:
        """The capacity at the revision of the answer."""
        return self.moments[-1]
