"""The judgement of an allocation when it is written: does it satisfy the claim's requests?

The objects published at that moment count. A device may go away or be tainted later, and the
allocation stays valid. A change within the seconds between a decision and its write may or may not
have been seen by the scheduler, so a finding that rests on it is unsure.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.pools import DeviceId, Pool
from app.analysis.verify.invariants.reading import Result, Taint
from app.analysis.verify.invariants.specs import ClaimSpec, Wanted, tolerations_in
from app.analysis.verify.invariants.stock import SINCE_EVER, Stock
from app.analysis.verify.invariants.violations import Finding, Place, ViolationKind
from app.domain.log import ObjectKey, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

RESERVATIONS_MAX = 256
"""Consumers of one claim. Parity: objects.md 10."""

BLOCKING = frozenset(("NoSchedule", "NoExecute"))
"""Effects of taints that keep a device from being allocated."""

_TAINTED = "placement-respects-taints"

_Fault = tuple[str, ViolationKind, tuple[ObjectKey, ...], str, bool]
"""Rule, kind, further objects, message, and whether the finding depends on a duration."""

_TYPES = ("int", "bool", "string", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The features and known defects of the cluster.

    `rules`: DeviceTaintRules taint; `rules_open`: or may, since a recording does not name their
    gate; `taints`: taints keep devices from being allocated; `patches`: ResourceSlicePatches change
    devices; `waits`: pods wait for binding conditions. `distinct_by_last`: with quirk q6,
    distinctAttribute compares with the last device of each request only. `rules_unseen`: with C24,
    the scheduler does not see the rules. `stops`: while nobody writes, the control plane may have
    been stopped, as that of a history that redra serves. `later`: the switches of its forks, each
    from the revision on at which the history was forked, in order.
    """

    rules: bool = True
    rules_open: bool = False
    taints: bool = True
    patches: bool = True
    waits: bool = True
    distinct_by_last: bool = False
    rules_unseen: bool = False
    stops: bool = False
    later: tuple[tuple[Revision, "Switches"], ...] = ()

    @property
    def may_have_rules(self) -> bool:
        """Whether the cluster may have DeviceTaintRules."""
        return self.rules or self.rules_open


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A written allocation: the claim, its requests, creation time and results, and the time.

    With a gap before it (not `is_dated`) it may have been written earlier; `is_steady` when the
    devices were certainly published then as they are now. `decided_from` gives the earliest instant
    at which it may have been chosen.
    """

    claim: ObjectKey
    spec: ClaimSpec
    made: Instant
    results: Sequence[Result]
    decided_from: Callable[[], Instant]
    is_dated: bool
    is_steady: bool

    def weighed(
        self, stock: Stock, is_sound: Callable[[Stock], bool]
    ) -> tuple[ViolationKind, bool]:
        """The severity of such a fault where earlier states were sound, and if that is by times.

        The scheduler may not have seen the changes of the moments before the write.
        """
        if not self.is_dated:
            return self.by_devices, False
        devices = {result.id for result in self.results}
        if any(map(is_sound, stock.earlier(self.decided_from(), devices))):
            return ViolationKind.UNSURE, True
        return ViolationKind.BROKEN, any(map(is_sound, stock.earlier(SINCE_EVER, devices)))

    @property
    def by_devices(self) -> ViolationKind:
        """The severity of a fault that the published devices of now show."""
        is_sure = self.is_dated or self.is_steady
        return ViolationKind.BROKEN if is_sure else ViolationKind.UNSURE


def judge(stock: Stock, switches: Switches, written: Written) -> Iterator[tuple[Place, Finding]]:
    """The faults of an allocation, each with its place within the allocation."""
    spec, wanted, results = written.spec, written.spec.wanted, written.results
    yield from _unsatisfied(written, wanted)
    if spec.constraints:
        yield from _constraints(stock, switches, written, spec.constraints)
    for index, result in enumerate(results):
        copied = tolerations_in(reading.value(result.tolerations))
        for rule, kind, objects, message, is_timed in _result(
            stock, switches, written, result, copied
        ):
            finding = _finding(written, kind, message, objects)
            # A taint of a rule is as certain as the rule, which is among the objects.
            pools = () if objects else (result.id[:2],)
            yield (rule, index), replace(finding, pools=pools, reads_times=is_timed)
    yield from judge_copies(written)


def judge_devices(
    stock: Stock, switches: Switches, written: Written
) -> Iterator[tuple[Place, Finding]]:
    """The faults of the chosen devices, each with its place, where those of now were those then.

    The taints of slices are as old as these; those of rules may be younger than the allocation.
    """
    if written.spec.constraints:
        yield from _constraints(stock, switches, written, written.spec.constraints)
    without_rules = replace(switches, rules=False)
    for index, result in enumerate(written.results):
        if stock.device(result.id) is None:
            continue
        copied = tolerations_in(reading.value(result.tolerations))
        for rule, kind, _, message, _ in _result(stock, without_rules, written, result, copied):
            finding = _finding(written, kind, message)
            yield (rule, index), replace(finding, pools=(result.id[:2],))


def judge_requests(written: Written) -> Iterator[tuple[Place, Finding]]:
    """The requests that the results do not satisfy or copy, whenever they were written.

    The requests of a claim never change. A claim that shows none was not recorded whole.
    """
    if written.spec.wanted:
        yield from _unsatisfied(written, written.spec.wanted)
        yield from judge_copies(written)


def judge_copies(written: Written) -> Iterator[tuple[Place, Finding]]:
    """Results that have not the tolerations of their request, whenever they were written."""
    for index, result in enumerate(written.results):
        request = written.spec.wanted.get(result.request)
        if request is None:
            continue
        if tolerations_in(reading.value(result.tolerations)) != request.tolerations:
            message = f"result {index} has not the tolerations of request {result.request}"
            yield ("tolerations-copied", index), _finding(written, ViolationKind.BROKEN, message)


def plain_pool(
    stock: Stock, switches: Switches, spec: ClaimSpec, results: Sequence[Result]
) -> Pool | None:
    """The pool of an allocation that is certainly valid: one untainted device for one request.

    None when the allocation may be invalid.
    """
    if len(results) != 1 or (switches.rules and stock.rules):
        return None
    result = results[0]
    if spec.single != result.request or result.admin_access or result.tolerations:
        return None
    pool = stock.pools.get((result.driver, result.pool))
    if pool is None:
        return None
    device = pool.devices.get(result.device)
    if device is None or device.taints:
        return None
    return pool if not result.share_id or device.allow_multiple_allocations else None


def _finding(
    written: Written, kind: ViolationKind, message: str, objects: Iterable[ObjectKey] = ()
) -> Finding:
    return Finding(kind=kind, objects=(written.claim, *objects), message=message)


def _unsatisfied(written: Written, wanted: Mapping[str, Wanted]) -> Iterator[tuple[Place, Finding]]:
    """Requests whose results differ from the request in number or access."""
    received: dict[str, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in written.results:
        received[_main(result.request)][result.request].append(result)
    for main in sorted({_main(name) for name in wanted} | received.keys()):
        problem = _shortage(received.get(main, {}), wanted)
        if problem:
            place = ("request-satisfied", main)
            yield place, _finding(written, ViolationKind.BROKEN, f"request {main} {problem}")


def _shortage(received: Mapping[str, Sequence[Result]], wanted: Mapping[str, Wanted]) -> str:
    if not received:
        return "got no device"
    if len(received) > 1:
        return f"got devices for several of its alternatives: {', '.join(sorted(received))}"
    ((name, results),) = received.items()
    request = wanted.get(name)
    if request is None:
        return f"got devices for {name}, which the claim does not request"
    if request.mode in ("", "ExactCount") and len(results) != (request.count or 1):
        devices = "device" if len(results) == 1 else "devices"
        return f"got {len(results)} {devices} of {request.count or 1}"
    if any(result.admin_access is not request.is_admin for result in results):
        return "got results whose adminAccess differs from its own"
    return ""


def _constraints(
    stock: Stock, switches: Switches, written: Written, listed: Sequence[JsonObject]
) -> Iterator[tuple[Place, Finding]]:
    for index, constraint in enumerate(listed):
        requests = reading.texts(constraint.get("requests"))
        under = [
            result
            for result in written.results
            if not requests or result.request in requests or _main(result.request) in requests
        ]
        match = reading.text(constraint, "matchAttribute")
        name = match or reading.text(constraint, "distinctAttribute")
        if not name or not under:
            continue
        by_last = None if match else switches.distinct_by_last
        holds, is_certain = _holds(name, under, by_last, stock)
        if not holds:
            kind, is_timed = ViolationKind.UNSURE, False
            if is_certain:
                kind, is_timed = written.weighed(stock, partial(_may_hold, name, under, by_last))
            verb = "do not agree in" if match else "do not differ in"
            message = f"the devices of constraint {index} {verb} {name}"
            pools = tuple(sorted({result.id[:2] for result in under}))
            finding = _finding(written, kind, message)
            yield (
                ("constraint-holds", index),
                replace(finding, pools=pools, reads_patches=True, reads_times=is_timed),
            )


def _holds(
    name: str, results: Sequence[Result], by_last: bool | None, stock: Stock
) -> tuple[bool, bool]:
    """Whether a constraint on an attribute holds, and whether that is certain.

    With `by_last` None the values are to agree, otherwise to differ.
    """
    values: list[tuple[str, frozenset[Any]] | None] = []
    is_certain = True
    for result in results:
        value, certain = stock.attribute_of(result.id, name)
        is_certain = is_certain and certain
        values.append(_values(value))
    if by_last is None:
        return _agree(values), is_certain
    requests = [_main(result.request) for result in results]
    return _differ(requests, values, by_last=by_last), is_certain


def _may_hold(name: str, results: Sequence[Result], by_last: bool | None, stock: Stock) -> bool:
    holds, is_certain = _holds(name, results, by_last, stock)
    return holds or not is_certain


def _is_shared(device: DeviceId, stock: Stock) -> bool:
    published = stock.device(device)
    return published is not None and published.allow_multiple_allocations


def _result(
    stock: Stock,
    switches: Switches,
    written: Written,
    result: Result,
    tolerations: Iterable[tuple[Any, ...]],
) -> Iterator[_Fault]:
    """The faults of one device."""
    id_ = result.id
    device = stock.device(id_)
    name = "/".join(id_)
    if device is None and not stock.pool(id_).has(id_[2]):
        if stock.may_lack(id_[:2]):
            yield (
                "allocated-device-existed",
                ViolationKind.UNSURE,
                (),
                f"no slice with {name} was recorded",
                False,
            )
        elif id_ in stock.gone and not written.is_dated:
            message = f"device {name} went away before this was seen"
            yield "allocated-device-existed", ViolationKind.UNSURE, (), message, True
        elif stock.gone.get(id_, SINCE_EVER) >= written.decided_from():
            message = f"device {name} went away just before"
            yield "allocated-device-existed", ViolationKind.UNSURE, (), message, True
        else:
            yield (
                "allocated-device-existed",
                ViolationKind.BROKEN,
                (),
                f"device {name} is in no slice",
                id_ in stock.gone,
            )
    if device is None:
        return
    if result.share_id and not device.allow_multiple_allocations:
        message = f"device {name} is allocated in shares and does not allow multiple allocations"
        kind, is_timed = written.weighed(stock, partial(_is_shared, id_))
        yield "share-of-shared-device", kind, (), message, is_timed
    is_tainted = device.taints or (switches.rules and stock.rules)
    if is_tainted and switches.taints and not result.admin_access:
        yield from _taints(stock, switches, written, id_, tolerations)


def _taints(
    stock: Stock,
    switches: Switches,
    written: Written,
    device: DeviceId,
    tolerations: Iterable[tuple[Any, ...]],
) -> Iterator[_Fault]:
    """The first taint that the scheduler must have seen, else the first that it may have seen."""
    doubtful = None
    for taint, since, rule in _taints_of(stock, device, with_rules=switches.rules):
        if taint.effect not in BLOCKING or any(_tolerates(each, taint) for each in tolerations):
            continue
        source = "its slice" if rule is None else f"DeviceTaintRule {rule.name}"
        objects = () if rule is None else (rule,)
        message = f"device {'/'.join(device)} is allocated although {source} taints it "
        message += f"{taint.key}:{taint.effect}"
        if rule is not None and switches.rules_unseen:
            message += ", which the scheduler of this release does not see (C24)"
            doubtful = doubtful or (_TAINTED, ViolationKind.KNOWN, objects, message, False)
        elif since <= written.made or (written.is_dated and since < written.decided_from()):
            is_timed = since > written.made
            yield _TAINTED, ViolationKind.BROKEN, objects, message, is_timed
            return
        else:
            doubtful = doubtful or (_TAINTED, ViolationKind.UNSURE, objects, message, True)
    if doubtful is not None:
        yield doubtful


def _taints_of(
    stock: Stock, device: DeviceId, *, with_rules: bool
) -> Iterator[tuple[Taint, Instant, ObjectKey | None]]:
    """Each taint of a device, the instant since which it exists, and its rule if it has one."""
    published = stock.device(device)
    began = stock.pool(device).taints.get(device[2], {})
    for taint in () if published is None else published.taints:
        yield taint, began[taint][0], None
    for key in sorted(stock.rules) if with_rules else ():
        rule = stock.rules[key]
        if rule.matches(device):
            yield rule.taint, rule.since, key


def _tolerates(toleration: tuple[Any, ...], taint: Taint) -> bool:
    key, operator, value, effect, _ = toleration
    if effect not in ("", taint.effect) or key not in ("", taint.key):
        return False
    return operator == "Exists" or (operator in ("", "Equal") and value == taint.value)


def _values(value: Any) -> tuple[str, frozenset[Any]] | None:
    """The type and values of an attribute; a scalar counts as a set with one value."""
    if not isinstance(value, dict):
        return None
    for kind in _TYPES:
        listed = value.get(f"{kind}s")
        if isinstance(listed, list) and listed:
            return kind, frozenset(map(_hashable, listed))
    for kind in _TYPES:
        if value.get(kind) is not None:
            return kind, frozenset((_hashable(value[kind]),))
    return None


def _agree(values: Sequence[tuple[str, frozenset[Any]] | None]) -> bool:
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len({kind for kind, _ in known}) > 1:
        return False
    return bool(frozenset.intersection(*(each for _, each in known)))


def _differ(
    requests: Sequence[str],
    values: Sequence[tuple[str, frozenset[Any]] | None],
    *,
    by_last: bool,
) -> bool:
    """Whether the values differ. Parity: allocator.md 6.

    A device without the attribute is accepted only as the first one.
    """
    earlier: list[tuple[str, tuple[str, frozenset[Any]] | None]] = []
    for request, value in zip(requests, values, strict=True):
        if earlier and value is None:
            return False
        for _, other in earlier:
            if other is None or value is None:
                continue
            if other[0] == value[0] and other[1] & value[1]:
                return False
        if by_last:
            earlier = [each for each in earlier if each[0] != request]
        earlier.append((request, value))
    return True


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, dict | list) else (type(value).__name__, value)


def _main(request: str) -> str:
    return request.partition("/")[0]
