"""Writes of drivers and administrators: slices, rules, patches, templates, nodes."""

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.claims import note_changed
from app.analysis.verify.invariants.cluster import LISTED, Cluster
from app.analysis.verify.invariants.stock import SINCE_EVER
from app.domain.log import Event, EventType

_DELETED, _CREATED = EventType.OBJECT_DELETED, EventType.OBJECT_CREATED


def take_slice(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write of a ResourceSlice. Parity: objects.md 7, what of it is immutable."""
    is_whole = cluster.note_published(event)
    key, now, stock = event.key, event.stamp.time, cluster.stock
    if event.type is _DELETED:
        cluster.forget_faults(key)
        cluster.note_pools(stock.remove_slice(key, now))
        return
    since = SINCE_EVER if event.stamp.verb == LISTED else now
    old = stock.slices.get(key)
    uid = None if old is None else old.uid
    touched = stock.put_slice(key, event.uid, event.body, since, now)
    if old is not None:
        new = stock.slices[key]
        if event.type is _CREATED or uid != new.uid:
            cluster.forget_faults(key)
        elif is_whole and new.uid:
            if old.pool[0] != new.pool[0]:
                note_changed(cluster, event, "spec.driver")
            if old.pool[1] != new.pool[1]:
                note_changed(cluster, event, "spec.pool.name")
            if old.node_name != new.node_name:
                note_changed(cluster, event, "spec.nodeName")
    cluster.note_pools(touched)


def take_rule(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a DeviceTaintRule."""
    cluster.note_published(event)
    if event.type is _DELETED:
        cluster.stock.remove_rule(event.key, event.stamp.time)
    else:
        now = event.stamp.time
        since = SINCE_EVER if event.stamp.verb == LISTED else now
        cluster.stock.put_rule(event.key, event.body, since, now)


def take_patch(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a ResourceSlicePatch."""
    cluster.note_published(event)
    if not cluster.switches.patches:
        return
    stock = cluster.stock
    if event.type is _DELETED:
        stock.patches.pop(event.key, None)
    else:
        is_new = event.type is _CREATED
        stock.put_patch(event.key, event.uid, event.body, event.revision, is_new=is_new)
    for pool in stock.pools.values():
        cluster.dirty.update((pool, device) for device in pool.holders)


def take_template(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a ResourceClaimTemplate. Parity: objects.md 6, immutable."""
    is_whole = cluster.unseen.note_write(event)
    key = event.key
    old = cluster.templates.pop(key, None)
    if event.type is _DELETED:
        cluster.forget_faults(key)
        return
    spec = reading.template(event.body).spec.copy()
    cluster.templates[key] = event.uid, spec
    if old is None:
        return
    if event.type is _CREATED or old[0] != event.uid:
        cluster.forget_faults(key)
    elif is_whole and event.uid and not reading.means_same(old[1], spec):
        note_changed(cluster, event, "spec")


def take_node(cluster: Cluster, event: Event, _: None) -> None:
    """Applies a write or deletion of a Node."""
    cluster.unseen.note_write(event)
    if event.type is _DELETED:
        cluster.labels.pop(event.key.name, None)
    else:
        cluster.labels[event.key.name] = reading.node(event.body).metadata.labels
