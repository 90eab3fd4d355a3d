"""Writes of drivers and administrators: slices, rules, patches, templates, nodes."""

import re

import msgspec
from msgspec import Raw

from app.analysis.verify.invariants import admin, reading
from app.analysis.verify.invariants.admin import note_changed
from app.analysis.verify.invariants.claims import change_between
from app.analysis.verify.invariants.cluster import LISTED, Cluster
from app.analysis.verify.invariants.rule_statuses import made_at
from app.analysis.verify.invariants.specs import asks_admin
from app.analysis.verify.invariants.stock import SINCE_EVER
from app.analysis.verify.invariants.unseen import is_shown
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values.timestamps import SECOND, Instant

_DELETED, _CREATED = EventType.OBJECT_DELETED, EventType.OBJECT_CREATED

_TAINTED = b'"taint'
_CALCULATED = re.compile(r"Calculated status for (\d{1,9}) pools")
_IMMUTABLE = ("spec.driver", "spec.pool.name", "spec.nodeName")
"""The immutable fields of a slice that the rules read. Parity: objects.md 7."""


class _PoolStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The numbers of devices of a pool; a pool that is not whole has none."""

    driver: str = ""
    pool_name: str = ""
    total_devices: int | None = None
    allocated_devices: int = 0
    available_devices: int = 0
    unavailable_devices: int = 0


class _Message(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The message of a condition."""

    message: str = ""


class _PoolStatuses(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The pools of a driver, and how many there are."""

    pools: tuple[_PoolStatus, ...] = ()
    pool_count: int | None = None
    conditions: tuple[_Message, ...] = ()


class _PoolsWanted(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The pools that are asked for: of a driver, or one of them, at most so many."""

    driver: str = ""
    pool_name: str = ""
    limit: int = 100


class _PoolStatusRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A ResourcePoolStatusRequest with its answer, which is kept as bytes."""

    spec: _PoolsWanted = _PoolsWanted()
    status: Raw = reading.NOTHING


_request_of_pools = reading.reader(_PoolStatusRequest)
_statuses_of_pools = reading.reader(_PoolStatuses)


def take_slice(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a ResourceSlice. Parity: objects.md 7 (immutable fields)."""
    is_whole = cluster.note_published(event)
    key, now, stock = event.key, event.stamp.time, cluster.stock
    if event.type is _DELETED:
        cluster.forget_faults(key)
        cluster.shown.pop(key, None)
        cluster.note_pools(stock.remove_slice(key, (now, event.revision)))
        _judge_generation(cluster, event)
        return
    since = SINCE_EVER if event.stamp.verb == LISTED else now
    old = stock.slices.get(key)
    uid = event.uid if old is None else old.uid
    before = None if old is None else (*old.pool, old.node_name)
    began = since, event.revision
    touched = stock.put_slice(key, event.uid, event.body, began, now)
    if event.type is _CREATED or uid != event.uid:
        cluster.forget_faults(key)
        cluster.shown.pop(key, None)
        before = None
    shown = cluster.last_shown(event, before)
    new = stock.slices[key]
    after = (*new.pool, new.node_name)
    if event.uid and is_shown(event.stamp.origin):
        _judge_nodes(cluster, event, new.slice.spec)
    for last in (before if is_whole and event.uid else None, shown):
        if last is not None and last != after:
            _note_changed_slice(cluster, event, last, after)
    _judge_generation(cluster, event)
    cluster.note_pools(touched)


def _note_changed_slice(
    cluster: Cluster, event: Event, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    for name, one, other in zip(_IMMUTABLE, before, after, strict=True):
        if one != other:
            note_changed(cluster, event, name)


def _judge_nodes(cluster: Cluster, event: Event, spec: reading.SliceSpec) -> None:
    """Notes a slice that selects nodes in two ways. Parity: objects.md 7.1.

    One in none may have a way that an older server does not know.
    """
    ways = {
        "nodeName": bool(spec.node_name),
        "nodeSelector": spec.node_selector is not None,
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }
    chosen = [name for name, is_set in ways.items() if is_set]
    if len(chosen) > 1:
        message = f"spec selects nodes by {' and '.join(chosen)}, of which a server allows one"
        admin.note_disagreement(cluster, event.key, "spec.nodes", message)


def _judge_generation(cluster: Cluster, event: Event) -> None:
    """Notes a spec that changed without its generation, or a generation that decreased.

    A server increases the generation with each change of the spec, from 1 on, so a missing write
    explains neither.
    The line of a removal may show an earlier state. Parity: objects.md 2.
    """
    if not (event.uid and is_shown(event.stamp.origin)):
        return
    key, specs = event.key, cluster.specs
    uid, body = specs.pop(key, ("", b""))
    is_end = event.type is _DELETED
    if not is_end:
        specs[key] = event.uid, event.body
    if admin.is_request(event):
        if admin.is_creation(event):
            _judge_first(cluster, event)
        if not is_end and _TAINTED in event.body:
            _judge_taints(cluster, event)
    if uid != event.uid:
        return
    last, now = reading.specified(body), reading.specified(event.body)
    before, after = last.metadata.generation, now.metadata.generation
    if not (before and after):
        return
    if after < before and not is_end:
        note_changed(cluster, event, "metadata.generation")
    if after == before and not reading.may_mean_same(last.spec, now.spec):
        note_changed(cluster, event, "spec (with the same metadata.generation)")


def _judge_first(cluster: Cluster, event: Event) -> None:
    """Notes a new object without the generation from which a server counts, which is 1.

    That one lacks it says something where another one has it: not all were left out.
    """
    first = reading.specified(event.body).metadata.generation
    cluster.counts |= first > 0
    if first > 1 or (first < 1 and cluster.counts):
        value = first or "not set"
        message = f"metadata.generation of the new object is {value}"
        admin.note_disagreement(cluster, event.key, "metadata.generation", message)


def _judge_taints(cluster: Cluster, event: Event) -> None:
    """Notes a taint without a time, which a server sets with each write. Parity: objects.md 11."""
    spec = reading.tainting(event.body).spec
    taints = [(f"device {each.name}: ", taint) for each in spec.devices for taint in each.taints]
    if spec.taint is not None:
        taints.append(("", spec.taint))
    for place, taint in taints:
        if not taint.time_added:
            message = f"{place}the taint {taint.key} has no timeAdded"
            admin.note_disagreement(cluster, event.key, f"{place}{taint.key}", message)


def take_rule(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a DeviceTaintRule."""
    cluster.note_published(event)
    cluster.rule_statuses.note_rule(event)
    if event.type is _DELETED:
        cluster.forget_faults(event.key)
        cluster.stock.remove_rule(event.key, event.stamp.time)
    else:
        since = now = event.stamp.time
        if event.stamp.verb == LISTED:
            # A stream that begins with its first object shows it as listed, although it is new.
            since = Instant(min(made_at(event) + SECOND, now))
        cluster.stock.put_rule(event.key, event.body, since, now)
        if event.type is _CREATED:
            cluster.forget_faults(event.key)
    _judge_generation(cluster, event)


def take_class(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a DeviceClass, of which only the generation is judged."""
    if event.type is not EventType.OBJECT_UPDATED:
        cluster.forget_faults(event.key)
    _judge_generation(cluster, event)


def take_patch(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a ResourceSlicePatch."""
    cluster.note_published(event)
    stock = cluster.stock
    if event.type is _DELETED:
        stock.remove_patch(event.key, event.stamp.time)
        cluster.forget_faults(event.key)
    else:
        is_new = event.type is _CREATED
        if is_new:
            cluster.forget_faults(event.key)
        since = SINCE_EVER if event.stamp.verb == LISTED else event.stamp.time
        stock.put_patch(event.key, event.uid, event.body, (since, event.revision), is_new=is_new)
    _judge_generation(cluster, event)
    if stock.has_patched_devices:
        cluster.note_devices()


def take_pool_status(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a ResourcePoolStatusRequest. Parity: objects.md 15.

    A request is answered once.
    """
    key = event.key
    before = cluster.answers.pop(key, None)
    if event.type is not EventType.OBJECT_UPDATED:
        cluster.forget_faults(key)
    if event.type is _DELETED:
        return
    if not (event.uid and is_shown(event.stamp.origin)):
        if before is not None:
            cluster.answers[key] = before
        return
    request = _request_of_pools(event.body)
    if not reading.value(request.status):
        answer = None
    else:
        answer = event.uid, request.status.copy()
        cluster.answers[key] = answer
        _judge_answer(cluster, key, request)
    if before is None or before[0] != event.uid:
        return
    if answer is None or not reading.means_same(before[1], answer[1]):
        note_changed(cluster, event, "status")


def _judge_answer(cluster: Cluster, key: ObjectKey, request: _PoolStatusRequest) -> None:
    """Notes pools that were not asked for, and numbers from which others do not follow.

    The numbers of a pool that is not whole are left out.
    """
    spec, status = request.spec, _statuses_of_pools(request.status)
    for pool in status.pools:
        name = f"{pool.driver}/{pool.pool_name}"
        if spec.driver not in ("", pool.driver) or spec.pool_name not in ("", pool.pool_name):
            message = f"the status is about the pool {name}, for which the request does not ask"
            admin.note_disagreement(cluster, key, f"status.pools {name}", message)
        if pool.total_devices is None:
            continue
        used = pool.allocated_devices + pool.unavailable_devices
        left = max(0, pool.total_devices - used)
        if pool.available_devices != left:
            message = f"{pool.available_devices} devices of pool {name} are available by the "
            message += f"status, and {left} by its other numbers"
            admin.note_disagreement(cluster, key, f"status.pools {name}", message)
    count, listed = status.pool_count, len(status.pools)
    if count is not None and listed != min(count, spec.limit):
        message = f"status.poolCount is {count}, spec.limit {spec.limit}, and {listed} pools are "
        message += "in the status"
        admin.note_disagreement(cluster, key, "status.poolCount", message)
    for condition in status.conditions:
        counted = _CALCULATED.fullmatch(condition.message)
        if counted is not None and count is not None and int(counted[1]) != count:
            message = f"status.poolCount is {count}, and the condition counts {counted[1]} pools"
            admin.note_disagreement(cluster, key, "status.conditions", message)


def take_template(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a ResourceClaimTemplate. Parity: objects.md 6 (immutable)."""
    is_dated = not cluster.unseen.covers(event.key)
    is_whole = cluster.unseen.note_write(event)
    key = event.key
    old = cluster.templates.pop(key, None)
    if event.type is _DELETED:
        cluster.forget_faults(key)
        cluster.shown.pop(key, None)
        return
    spec = reading.template(event.body).spec.copy()
    cluster.templates[key] = event.uid, spec
    if event.type is _CREATED or (old is not None and old[0] != event.uid):
        cluster.forget_faults(key)
        cluster.shown.pop(key, None)
        old = None
    before = None if old is None else old[1]
    shown = cluster.last_shown(event, before)
    if shown is not None and (kind := change_between(shown, spec)) is not None:
        note_changed(cluster, event, "spec", kind)
    if before is not None and is_whole and event.uid and not reading.means_same(before, spec):
        note_changed(cluster, event, "spec")
    if admin.is_creation(event) and asks_admin(reading.get(reading.value(spec), "spec")):
        admin.judge(cluster, event, is_dated=is_dated)


def take_node(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a Node."""
    cluster.unseen.note_write(event)
    if event.type is _DELETED:
        cluster.labels.pop(event.key.name, None)
    else:
        cluster.labels[event.key.name] = reading.labelled(event.body).metadata.labels
