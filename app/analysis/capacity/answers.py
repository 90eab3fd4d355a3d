"""What still fits, as values: the shape of every answer about capacity.

Amounts of counters are Kubernetes quantities as texts, instants RFC 3339 texts with microseconds.
"""

import msgspec

from app.domain.log import Revision
from app.domain.log.doubts import Doubt


class NodeCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many copies a node gets."""

    node: str
    count: int


class DeviceCause(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that is against devices of refusing nodes, for one request.

    `cause` is a kind of cause such as `allocated`, `counters` or `taint`, or `suitable` for devices
    that nothing is against alone; `about` is what it is about, such as the taint.
    """

    request: str
    cause: str
    devices: int
    nodes: int
    about: str = ""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no further copy.

    `kind` is `unschedulable` (no node takes it), `refused` (the API refuses it, as for a quota),
    `left` (the scheduler leaves it alone: it is gated, or for another one), `error`, or `bound` (no
    more were tried). `text` is upstream's message. `nodes` counts nodes by what they
    say, `causes` the devices of those that refuse it for devices. `victims` are pods that the
    scheduler would evict for it.
    """

    kind: str
    text: str
    nodes: dict[str, int] = {}
    causes: tuple[DeviceCause, ...] = ()
    victims: tuple[str, ...] = ()


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How many more copies of one pod with its claims are placed, one after another.

    The number is what the scheduler does, attempt by attempt, as every copy takes what its attempt
    chose; another order or other choices could place more. `at_most` is a bound for any choice:
    what free devices that match would give if where they are did not matter; None where devices
    are shared, or chosen among alternatives.
    """

    subject: str
    count: int
    nodes: tuple[NodeCount, ...]
    limit: Limit
    at_most: int | None = None


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What fits as of a revision; `omitted` subjects were not tried.

    `waiting` pods that wait at that moment are not placed first.
    """

    history: str
    revision: Revision
    time: str
    items: tuple[Fit, ...]
    waiting: int = 0
    omitted: int = 0
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()


class ClassCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A device class: its devices in usable pools, those without a taint, those that are free.

    Free ones are without a taint, held by nobody, of a node that is there, and their counters
    suffice for each alone.
    `largest` is how many devices the largest claim of the class can have that still fits, on
    `node`; with `is_least` the search was given up, and there may be a larger one.
    """

    name: str
    devices: int
    allocatable: int
    free: int
    largest: int
    node: str = ""
    is_least: bool = False


class CounterCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A counter of all pools of a driver: all of it, what is left, and what of that is stranded.

    Stranded is what is left in a counter set from which no free device of its pool can be drawn.
    """

    driver: str
    counter: str
    total: str
    left: str
    stranded: str


class CapacityMoment(msgspec.Struct, frozen=True, kw_only=True):
    """What fitted at one moment."""

    revision: Revision
    time: str
    classes: tuple[ClassCapacity, ...]
    counters: tuple[CounterCapacity, ...]


class CapacityCourse(msgspec.Struct, frozen=True, kw_only=True):
    """What fits as of a revision, and at sampled moments up to there, oldest first.

    `missing` moments are not worked out yet: asking again goes on. The last moment is the
    revision's own.
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
        """What fits at the revision of the answer."""
        return self.moments[-1]
