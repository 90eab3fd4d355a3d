"""Classes, slices and rules of which a line is lost, as far as recorded allocations show it.

A scheduler gives devices that some slice publishes, for requests whose class exists, and none with
a taint that the request does not tolerate. An allocation that contradicts the last line of a slice
or rule is a mistake of the scheduler, or a later line is lost. Two things tell these apart. A lost
line leaves a version of the store that no line is about. And who sees another state gives such
devices again: so claims of several decisions have to show it. A class that no line shows needs no
second claim, as it decides about all devices of a request, and a claim of it would have got none.
The number of slices alone is no evidence of a slice that no line shows: it is as wrong where a
scheduler gives devices of an incomplete pool. Evidence are devices that draw upon counters which
the slice has to publish, and a claim with a device of the pool that no slice of it has in any line.
One such claim is enough if others got devices of the pool, too: one lost line explains both, which
would be two mistakes. A pool that is published again after all its slices were deleted is another
one in this respect. A slice that alone lacks the newest generation of its pool got it in a lost
line if several claims got devices of the pool since: a scheduler gives none while one is behind.
Where slices of one pool are missed, one lost line explains it, and the gap is of that pool. Where
those of several are, lines are lost here and there, and it is of all slices.
Parity: history-formats.md 4.5.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from app.adapters.history.joining.spool import Spool, key_of
from app.adapters.history.reading import Notes
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.devices import taints
from app.domain.devices.model import Taint
from app.domain.devices.taints import TaintRule
from app.domain.log import ObjectKey
from app.domain.log.doubts import LOST_OF_MIN
from app.domain.log.records import Loss, Op, Quality, Record, TimeQuality, compared_version
from app.domain.log.store_versions import Versions, WriteSpan
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import dra, entries
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

_READ = frozenset(
    (
        api_resources.RESOURCE_CLAIMS,
        api_resources.DEVICE_CLASSES,
        api_resources.RESOURCE_SLICES,
        api_resources.DEVICE_TAINT_RULES,
    )
)
_ROWS = (
    "SELECT row, key, op, actor AND exact AND time IS NOT NULL, asked, time, body FROM record "
    "WHERE op IN ('BASELINE', 'ADDED', 'MODIFIED', 'DELETED') AND key > ? AND key < ? "
    "ORDER BY epoch, version, sub"
)
_VERSIONED = (
    "SELECT own, asked, time FROM record WHERE own <> '' AND actor AND exact AND time IS NOT NULL "
    "AND op IN ('ADDED', 'MODIFIED', 'DELETED') ORDER BY own"
)
_SHOWN_OTHERWISE = (
    "SELECT 1 FROM record WHERE NOT actor AND op IN ('ADDED', 'MODIFIED', 'DELETED') LIMIT 1"
)
_ENDS = "SELECT 1 FROM record WHERE op = 'DELETED' LIMIT 1"
_OTHERS = (
    "SELECT own, head, op, asked, time FROM record WHERE actor AND time IS NOT NULL "
    "AND (own = '' AND op IN ('ADDED', 'MODIFIED') OR op = 'DELETED')"
)


class _SpooledLine(NamedTuple):
    """A row of the spool, with the time between its request and its answer."""

    row: int
    key: ObjectKey
    span: WriteSpan


@dataclass(slots=True)
class _Publisher:
    """The last state of a slice or rule, and the allocations that contradict it."""

    line: _SpooledLine
    devices: dict[DeviceId, tuple[Taint, ...]] = field(default_factory=dict)
    rule: TaintRule | None = None
    against: dict[ObjectKey, _SpooledLine] = field(default_factory=dict)

    def forbids(self, result: DeviceResult) -> bool:
        """Whether it taints the device of a result, and the result does not tolerate that."""
        taint = self.devices.get(result.id, ())
        if self.rule is not None and self.rule.matches(result.id):
            taint = (self.rule.taint,)
        if not taint or result.admin_access:
            return False
        tolerations = [taints.toleration_of(tree) for tree in result.tolerations]
        return taints.untolerated(taint, tolerations) is not None


@dataclass(slots=True)
class _PoolLines:
    """The slices of a pool that lines show until all are gone, and the claims with its devices.

    `emptied` is the line after which none was left, if there were others before.
    """

    emptied: _SpooledLine | None = None
    slices: set[ObjectKey] = field(default_factory=set)
    gone: set[ObjectKey] = field(default_factory=set)
    announced: int = 0
    drawn_upon: set[str] = field(default_factory=set)
    published: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    claims: dict[ObjectKey, _SpooledLine] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    lines: dict[ObjectKey, tuple[int, _SpooledLine]] = field(default_factory=dict)
    of_lagging: dict[ObjectKey, _SpooledLine] = field(default_factory=dict)

    @property
    def lagging(self) -> list[_SpooledLine]:
        """The last lines of the slices that alone lack the newest generation of a whole pool."""
        there = {key: last for key, last in self.lines.items() if key not in self.gone}
        newest = max((generation for generation, _ in there.values()), default=0)
        lines = [line for generation, line in there.values() if generation < newest]
        return lines if len(there) == self.announced else []

    def read(self, line: _SpooledLine, tree: JsonView) -> None:
        """Read a state of one of its slices."""
        key = line.key
        self.slices.add(key)
        self.gone.discard(key)
        self.lines[key] = dra.pool(tree).generation, line
        self.announced = max(self.announced, dra.pool(tree).resource_slice_count)
        self.published.update(map(entries.name, dra.shared_counters(tree)))
        for device in dra.devices(tree):
            self.devices.add(dra.published_name(device))
            self.drawn_upon.update(map(dra.counter_set, dra.consumptions(device)))
        if not self.lagging:
            self.of_lagging.clear()

    def give(self, line: _SpooledLine, device: str) -> None:
        """Note a device of the pool that a claim got."""
        if not self._may_be_chosen_before(line):
            self.claims.setdefault(line.key, line)
            self.given.add(device)
        written = max((each.span.until for _, each in self.lines.values()), default=Instant(0))
        if self.lagging and line.span.since > written + IN_FLIGHT:
            self.of_lagging.setdefault(line.key, line)

    def _may_be_chosen_before(self, line: _SpooledLine) -> bool:
        """Whether a device may have been chosen before the pool was empty."""
        if self.emptied is None or self.slices:
            return False
        return line.span.since <= self.emptied.span.until + IN_FLIGHT

    @property
    def first(self) -> _SpooledLine:
        """The line in which the first claim got devices of it."""
        return next(iter(self.claims.values()))

    def may_be_hidden(self, versions: Versions) -> bool:
        """Whether a version is left for a slice before the first claim that got its devices."""
        begun = Instant(0) if self.emptied is None else self.emptied.span.until
        return versions.may_hide(begun, self.first.span.since)

    @property
    def missing(self) -> str:
        """The slice about which no line is, though several claims got devices of it; or empty."""
        if len(self.claims) < LOST_OF_MIN:
            return ""
        if not self.slices:
            return "a slice"
        if len(self.slices) >= self.announced:
            return ""
        if not self.drawn_upon <= self.published:
            return "the slice with counters"
        return "" if self.given <= self.devices else "the slice with some devices"


@dataclass(slots=True)
class _ShownAllocations:
    """The states that the lines show, and the allocations that rest on something else."""

    classes: set[ObjectKey] = field(default_factory=set)
    pools: dict[PoolId, list[_PoolLines]] = field(default_factory=dict)
    publishers: dict[ObjectKey, _Publisher] = field(default_factory=dict)
    allocated: set[ObjectKey] = field(default_factory=set)
    of_class: dict[ObjectKey, _SpooledLine] = field(default_factory=dict)

    def read(self, line: _SpooledLine, op: str, tree: JsonView | None) -> None:
        """Read the next line of one of the kinds; `tree` is the object in it."""
        kind = line.key[:2]
        if kind == api_resources.DEVICE_CLASSES:
            self.classes.add(line.key)
        elif kind == api_resources.RESOURCE_CLAIMS:
            self._read_claim(line, op, tree or {})
        elif op == Op.DELETED or tree is None:
            self.publishers.pop(line.key, None)
            if tree and kind == api_resources.RESOURCE_SLICES:
                self._read_end(line, tree)
        elif kind == api_resources.RESOURCE_SLICES:
            self._pool(dra.pool_id(tree)).read(line, tree)
            self.publishers[line.key] = _Publisher(line, devices=_tainted(tree))
        else:
            self.publishers[line.key] = _Publisher(line, rule=taints.rule_of(dict(tree)))

    def _pool(self, pool: PoolId) -> _PoolLines:
        """The states of a pool that lines show since it was empty."""
        return self.pools.setdefault(pool, [_PoolLines()])[-1]

    def _read_end(self, line: _SpooledLine, tree: JsonView) -> None:
        """Read the end of a slice, which may be the only line about it."""
        pool = self._pool(dra.pool_id(tree))
        pool.read(line, tree)
        pool.gone.add(line.key)
        if pool.gone == pool.slices:
            self.pools[dra.pool_id(tree)].append(_PoolLines(emptied=line))

    def _read_claim(self, line: _SpooledLine, op: str, claim: JsonView) -> None:
        results = () if op == Op.DELETED else dra.results(claim)
        if not results:
            self.allocated.discard(line.key)
            return
        if line.key in self.allocated or op != Op.MODIFIED:
            return
        self.allocated.add(line.key)
        for request in dra.requests(claim):
            for details in filter(None, (request.exactly, *request.first_available)):
                named = ObjectKey(*api_resources.DEVICE_CLASSES, "", details.device_class_name)
                self.of_class.setdefault(named, line)
        for driver, pool_name, device in {result.id for result in results}:
            self._pool((driver, pool_name)).give(line, device)
        for publisher in self.publishers.values():
            if any(publisher.forbids(result) for result in results):
                publisher.against.setdefault(line.key, line)


def note(spool: Spool, notes: Notes) -> None:
    """Add a gap for each class, slice and rule of which a line is lost, as allocations show."""
    shown = _read(spool)
    unknown = [] if not shown.classes else sorted(shown.of_class.keys() - shown.classes)
    has_slices = any(each.slices for lines in shown.pools.values() for each in lines)
    unpublished = [
        (pool, which, each)
        for pool, lines in sorted(shown.pools.items())
        for each in lines
        if has_slices and (which := each.missing)
    ]
    # Without any deletion, those are left out, which is noted elsewhere.
    tells_ends = spool.database.execute(_ENDS).fetchone() is not None
    contradicted = [
        each
        for each in shown.publishers.values()
        if len(each.against) >= LOST_OF_MIN and (tells_ends or each.rule is None)
    ]
    behind = [
        each
        for lines in shown.pools.values()
        for each in lines
        if len(each.lagging) == 1 and len(each.of_lagging) >= LOST_OF_MIN
    ]
    if not (unknown or unpublished or contradicted or behind):
        return
    versions = versions_of(spool)
    for key in unknown:
        line = shown.of_class[key]
        if versions.may_hide(Instant(0), line.span.since):
            _put(spool, key, line, f"{key.name} is not in the log, and devices were given for it")
    missed = [each for each in unpublished if each[2].may_be_hidden(versions)]
    are_of_one = len({place for place, _, _ in missed}) < LOST_OF_MIN
    for place, which, pool in missed:
        message = (
            f"no line is about {which} of pool {place[1]} of {place[0]}, and {len(pool.claims)} "
            "claims got devices of it"
        )
        notes.add(message)
        _put_missed_slice(spool, pool, message, "/".join(place) if are_of_one else "")
    for pool in behind:
        (last,), (first, second, *_) = pool.lagging, pool.of_lagging.values()
        if versions.may_hide(last.span.until, first.span.since):
            text = "it alone lacks the newest generation of its pool, of which claims got devices"
            _put(spool, last.key, second, text)
    for each in contradicted:
        first, second, *_ = each.against.values()
        if versions.may_hide(each.line.span.until, first.span.since):
            text = "its last line says that devices are tainted which several claims got later"
            _put(spool, each.line.key, second, text)


def versions_of(spool: Spool) -> Versions:
    """The versions of an audit log that no line is about."""
    other = spool.database.execute(_SHOWN_OTHERWISE).fetchone()
    versions = Versions(are_requests=other is None)
    for own, arrived, answered in spool.database.execute(_VERSIONED):
        # A line without a version has that of the same write in another source.
        versions.note(compared_version(own), _span(arrived, answered))
    for own, head, op, arrived, answered in spool.database.execute(_OTHERS):
        record = spool.record_in(head)
        is_removal = op == Op.DELETED
        if is_removal and Loss.COLLAPSED in record.losses:
            versions.note_unversioned(_span(arrived, answered))
        if not own and (is_removal or record.verb in ("create", "deletecollection")):
            versions.note_unversioned(_span(arrived, answered))
    return versions


def _read(spool: Spool) -> _ShownAllocations:
    shown = _ShownAllocations()
    bounds = f"{api_groups.RESOURCE}\0", f"{api_groups.RESOURCE}\1"
    for row, key, op, is_answer, arrived, answered, body in spool.database.execute(_ROWS, bounds):
        read = key_of(key)
        if read[:2] in _READ:
            span = _span(arrived, answered) if is_answer else WriteSpan(Instant(0), Instant(0))
            shown.read(_SpooledLine(row, read, span), op, spool.tree_in(body))
    return shown


def _span(arrived: int | None, answered: int) -> WriteSpan:
    return WriteSpan(Instant(answered if arrived is None else arrived), Instant(answered))


def _tainted(tree: JsonView) -> dict[DeviceId, tuple[Taint, ...]]:
    """The devices of a slice that have taints."""
    driver, pool = dra.pool_id(tree)
    return {
        (driver, pool, dra.published_name(device)): tuple(map(taints.taint_of, trees))
        for device in dra.devices(tree)
        if (trees := dra.device_taints(device))
    }


def _put(spool: Spool, key: ObjectKey, line: _SpooledLine, message: str) -> None:
    """Add a gap of an object behind the line that shows it."""
    witness = spool.row(line.row).record
    epoch, version, *_ = witness.order_key
    spool.put(_gap(key, witness, (epoch, version, 1), message))


def _put_missed_slice(spool: Spool, pool: _PoolLines, message: str, name: str) -> None:
    """Add a gap of slices, where the pool had none, or at the beginning of the log.

    It is of the pool with a name (`DRIVER/POOL`), of all pools without one.
    """
    witness = spool.row(pool.first.row).record
    epoch, version = witness.order_key[0], ""
    if pool.emptied is not None:
        epoch, version, *_ = spool.row(pool.emptied.row).record.order_key
    kind = ObjectKey(*api_resources.RESOURCE_SLICES, "", "")
    gap = _gap(kind, witness, (epoch, version, 1), message)
    undated = {"observed_at": None, "time_quality": TimeQuality.NONE}
    spool.put(msgspec.structs.replace(gap, pool=name, **undated))


def _gap(key: ObjectKey, witness: Record, place: tuple[int, str, int], message: str) -> Record:
    group, resource, namespace, name = key
    return Record(
        source=witness.source,
        position=witness.position,
        op=Op.GAP,
        group=group,
        resource=resource,
        namespace=namespace,
        name=name,
        object_quality=Quality.IDENTITY,
        observed_at=witness.observed_at,
        time_quality=witness.time_quality,
        order_key=(*place, *witness.order_key[3:]),
        losses=(Loss.GAP,),
        message=message,
    )
