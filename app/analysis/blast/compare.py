"""The effect of a change on pods, claims, devices, pools and classes, without writing anything.

A proposal is a list of objects to put (created, or replaced as `kubectl replace` does) and of
objects to delete. For an existing rule, the state is compared with the state without the rule.
`blast` and `blast_of_rule` are pure and CPU-intensive: run them in a thread, on what `freeze` took.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.analysis import scope
from app.analysis.blast import (
    access,
    counting,
    draining,
    endings,
    protection,
    quotas,
    remarks,
    removals,
)
from app.analysis.blast import claims as blasting_claims
from app.analysis.blast import devices as blasting_devices
from app.analysis.blast import pods as blasting_pods
from app.analysis.blast import waiting as blasting_waiting
from app.analysis.blast.bounds import BlastBounds
from app.analysis.blast.cutting import ListCut
from app.analysis.blast.radius import (
    LOST,
    BlastRadius,
    Effect,
    Prospect,
)
from app.analysis.blast.waiting import Waiting
from app.analysis.blast.world import Consequences, Frozen, World
from app.domain.controllers.rule_status import condition
from app.domain.errors import InputError, NotFound, Rejected
from app.domain.log import EventType, ObjectKey
from app.domain.objects import history_kinds, registry
from app.domain.objects.write.commands import (
    CreateObject,
    DeleteObject,
    FieldValidation,
    PatchObject,
    PatchType,
    UpdateObject,
    WriteOptions,
)
from app.domain.values import api_resources, counts, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject

KINDS = (
    "DeviceTaintRule", "DeviceClass", "ResourceSlice", "ResourceSlicePatch", "Node",
    "ResourceQuota",
)  # fmt: skip
"""The kinds that can be proposed; other kinds change no devices."""

NAMESPACED = ("ResourceQuota",)

DELETED_KINDS = (*KINDS, "Pod", "ResourceClaim")
"""The kinds that can be deleted in a proposal."""

_STRICT = WriteOptions(field_manager="redra-blast", field_validation=FieldValidation.STRICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """An object to create or replace; `place` is its source, for messages."""

    tree: JsonObject
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedDeletion:
    """An object to delete, as named by the user."""

    kind: str
    name: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCordon:
    """A node to cordon."""

    node: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedDrain:
    """A node to drain."""

    node: str
    place: str = ""


Change = Put | ProposedDeletion | ProposedCordon | ProposedDrain


def blast(
    frozen: Frozen, changes: Sequence[Change], bounds: BlastBounds = BlastBounds()
) -> BlastRadius:
    """The effect of all changes together. Raises InputError or Rejected if one is refused.

    A refusal of a change that has a place is an InputError naming it.
    """
    if not changes:
        raise InputError(
            "no change is proposed",
            cure="propose objects, objects to delete, or nodes to cordon or to drain",
        )
    if len(changes) > bounds.changes_max:
        raise InputError(
            f"{len(changes)} changes are more than {bounds.changes_max}",
            cure="propose fewer at once, or raise REDRA_BLAST_CHANGES_MAX",
        )
    world = World(frozen)
    before = world.consequences()
    waiting = blasting_waiting.waiting(world, bounds.waiting_max)
    effects = [_take(world, change) for change in changes]
    rules = [
        key for key, _ in effects if (key.group, key.resource) == api_resources.DEVICE_TAINT_RULES
    ]
    effects_told = [_with_remarks(world, key, effect) for key, effect in effects]
    previewed = _pretend(world, rules)
    after = world.consequences()
    comparison = _compare(
        frozen, world, before, after, effects_told, bounds, is_preview=bool(previewed)
    )
    deletions = protection.settle(world, bounds.listed_max)
    if limiting := [key for key, _ in effects if key[:2] == api_resources.RESOURCE_QUOTAS]:
        comparison = quotas.with_quotas(
            comparison, World(frozen), world, limiting, bounds.listed_max
        )
    then = blasting_waiting.waiting(world, bounds.waiting_max)
    ended = then
    if endings.are_needed(world, before, after, then):
        ended = endings.waiting(world, previewed, before, after, bounds.waiting_max)
    tries = _PlacementTries(before=waiting, after=then, ended=ended)
    comparison = protection.with_deletions(comparison, deletions, bounds.listed_max)
    return _with_waiting(world, comparison, tries, bounds)


def blast_of_rule(frozen: Frozen, name: str, bounds: BlastBounds = BlastBounds()) -> BlastRadius:
    """The effect of an existing DeviceTaintRule, against the state without it. Raises NotFound."""
    world = World(frozen)
    key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", name)
    if world.objects.get(key) is None:
        raise NotFound(
            f'devicetaintrules.resource.k8s.io "{name}" not found',
            group=key.group,
            resource=key.resource,
            name=name,
        )
    effect = _with_remarks(world, key, Effect(action="present", kind="DeviceTaintRule", name=name))
    previewed = _pretend(world, [key])
    after = world.consequences()
    waiting = blasting_waiting.waiting(world, bounds.waiting_max)
    world.remove(key)
    before = world.consequences()
    comparison = _compare(
        frozen, world, before, after, [effect], bounds, is_preview=bool(previewed)
    )
    without = blasting_waiting.waiting(world, bounds.waiting_max)
    ended = waiting
    if endings.are_needed(world, before, after, waiting):
        again = World(frozen)
        previewed = _pretend(again, [key])
        ended = endings.waiting(again, previewed, before, after, bounds.waiting_max)
    tries = _PlacementTries(before=without, after=waiting, ended=ended)
    return _with_waiting(world, comparison, tries, bounds)


def read_changes(
    trees: Iterable[tuple[str, object]],
    deletions: Iterable[str],
    cordons: Iterable[str] = (),
    drains: Iterable[str] = (),
) -> list[Change]:
    """The changes in documents (with their places), in `KIND/NAME` texts (pods and claims may be
    named `pod/NAMESPACE/NAME`), and nodes to cordon or drain. Raises InputError.
    """
    changes: list[Change] = []
    for place, tree in trees:
        if tree is None:
            continue
        if not isinstance(tree, dict):
            raise InputError("a document must be an object", place=place)
        items = tree.get("items")
        if str(tree.get("kind", "")).endswith("List") and isinstance(items, list):
            changes += [_item(item, number, place) for number, item in enumerate(items)]
        else:
            changes.append(Put(tree=tree, place=place))
    for text in deletions:
        kind, slash, name = text.partition("/")
        if not slash or not kind or not name:
            raise InputError(f"{text!r} does not name an object", cure="write it as KIND/NAME")
        changes.append(ProposedDeletion(kind=kind, name=name))
    changes += [ProposedCordon(node=name) for name in cordons]
    changes += [ProposedDrain(node=name) for name in drains]
    return changes


def existing_keys(changes: Iterable[Change]) -> Iterator[ObjectKey]:
    """The keys of the objects that must exist for the changes: deleted ones, and nodes."""
    for change in changes:
        match change:
            case ProposedDeletion():
                kind = _deleted_kind(change)
                if kind is not None:
                    yield _deleted_key(kind, change)
            case ProposedCordon() | ProposedDrain():
                yield ObjectKey(*api_resources.NODES, "", change.node)
            case Put():
                pass


def _item(item: object, number: int, place: str) -> Put:
    if not isinstance(item, dict):
        raise InputError(f"items[{number}] must be an object", place=place)
    return Put(tree=item, place=place)


def _take(world: World, change: Change) -> tuple[ObjectKey, Effect]:
    try:
        match change:
            case Put():
                return _put(world, change)
            case ProposedDeletion():
                return _delete(world, change)
            case ProposedCordon():
                return _cordon(world, change)
            case ProposedDrain():
                key, effect = _cordon(world, ProposedCordon(node=change.node))
                warnings = (*effect.warnings, *draining.drain(world, change.node))
                return key, msgspec.structs.replace(effect, action="drained", warnings=warnings)
    except Rejected as problem:
        if not change.place:
            raise
        raise InputError(problem.message, place=change.place) from problem


def _put(world: World, change: Put) -> tuple[ObjectKey, Effect]:
    tree = json_tree.copy(change.tree)
    kind_name, text = meta.kind(tree), meta.api_version(tree)
    if kind_name not in KINDS:
        raise _no_blast(world, kind_name, change.place, KINDS)
    if not text:
        raise InputError("it has no apiVersion", place=change.place)
    group, version = registry.split_api_version(text)
    kind = registry.find_kind(group, version, kind_name)
    if kind is None:
        raise InputError(
            f"there is no {kind_name} in {text}",
            place=change.place,
            cure=f"kubectl explain {kind_name.lower()} lists the versions",
        )
    if not registry.is_served(kind, group, version, world.profile):
        raise _not_served(world, kind, f"{kind_name} in {text}", change.place)
    namespace = (meta.namespace(tree) or "default") if kind.namespaced else ""
    key = ObjectKey(group, kind.plural, namespace, meta.name(tree))
    old = world.objects.get(key)
    if old is None:
        proposed_taints = core.taints(tree)
        decided = world.apply(
            CreateObject(key=key, version=version, tree=tree, options=_STRICT), "create"
        )
        if kind.kind == "Node":
            removals.make_ready(world, key, proposed_taints)
        action = "created"
    else:
        _keep_what_apply_keeps(tree, old)
        decided = world.apply(
            UpdateObject(key=key, version=version, tree=tree, options=_STRICT), "update"
        )
        action = "replaced" if decided.drafts else "unchanged"
    name = meta.name(decided.tree or {})
    effect = Effect(action=action, kind=kind.kind, name=name, warnings=decided.warnings)
    return key._replace(name=name), effect


def _delete(world: World, change: ProposedDeletion) -> tuple[ObjectKey, Effect]:
    kind = _deleted_kind(change)
    if kind is None:
        raise _no_blast(world, change.kind, change.place, DELETED_KINDS)
    key = _deleted_key(kind, change)
    old = world.objects.get(key) or {}
    served = registry.served_versions(kind, world.profile)
    if not served:
        raise _not_served(world, kind, kind.kind, f"{change.kind}/{change.name}")
    command = DeleteObject(key=key, version=served[0][1], options=_STRICT)
    decided = world.apply_to(key, command, "delete")
    if kind.kind == "Pod":
        removals.note_pod(world, key, old)
    elif kind.kind == "ResourceClaim":
        world.touched.claims[key] = old
    elif kind.kind == "Node":
        removals.note_node(world, key.name, meta.uid(old))
    is_gone = any(draft.type is EventType.OBJECT_DELETED for draft in decided.drafts)
    action = "deleted" if is_gone else "terminating"
    effect = Effect(action=action, kind=kind.kind, name=change.name, warnings=decided.warnings)
    return key, msgspec.structs.replace(effect, grace_seconds=removals.grace(world, key))


def _deleted_kind(change: ProposedDeletion) -> registry.Kind | None:
    named = registry.named(change.kind)
    return next((kind for kind in named if kind.kind in DELETED_KINDS), None)


def _deleted_key(kind: registry.Kind, change: ProposedDeletion) -> ObjectKey:
    namespace, _, name = change.name.rpartition("/") if kind.namespaced else ("", "", change.name)
    return ObjectKey(kind.group, kind.plural, namespace or ("default" * kind.namespaced), name)


def _cordon(world: World, change: ProposedCordon) -> tuple[ObjectKey, Effect]:
    key = ObjectKey(*api_resources.NODES, "", change.node)
    body = {"spec": {"unschedulable": True}}
    command = PatchObject(key=key, version="v1", type=PatchType.MERGE, body=body, options=_STRICT)
    decided = world.apply_to(key, command, "patch")
    action = "cordoned" if decided.drafts else "unchanged"
    return key, Effect(action=action, kind="Node", name=change.node, warnings=decided.warnings)


def _not_served(world: World, kind: registry.Kind, what: str, place: str) -> InputError:
    profile = world.profile
    served = [f"{group}/{version}" for group, version in registry.served_versions(kind, profile)]
    return InputError(
        f"the history imitates {profile.patch or profile.version} and does not serve {what}",
        place=place,
        cure=f"write it in {', '.join(served)}",
    )


def _no_blast(world: World, kind: str, place: str, kinds: Sequence[str]) -> InputError:
    named = registry.named(kind, history_kinds.all_kinds(world.objects)) if kind else ()
    if kind and not named:
        return scope.no_kind(kind, place)
    spelt = named[0].kind if named else "an object without kind"
    if spelt in kinds:
        return InputError(f"there is no kind {kind!r}", place=place, cure=f"write {spelt}")
    return InputError(f"{spelt} changes no devices", place=place, cure=f"use {', '.join(kinds)}")


def _keep_what_apply_keeps(tree: JsonObject, old: JsonObject) -> None:
    """Makes an object that is put again replace the present one, whatever its version is; a rule
    without `timeAdded` keeps the stored one, as with kubectl apply.
    """
    metadata = tree["metadata"]
    if not metadata.get("resourceVersion"):
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    taint = json_tree.get(tree, "spec", "taint")
    stored = json_tree.text(old, "spec", "taint", "timeAdded")
    if isinstance(taint, dict) and stored:
        taint.setdefault("timeAdded", stored)


def _with_remarks(world: World, key: ObjectKey, effect: Effect) -> Effect:
    """The effect with remarks and the future status of a rule. Parity: controllers.md 1.6."""
    warnings = (*effect.warnings, *remarks.on(world, key))
    effect = msgspec.structs.replace(effect, warnings=warnings)
    rule = (
        world.taints.rules.get(key.name)
        if (key.group, key.resource) == api_resources.DEVICE_TAINT_RULES
        else None
    )
    if rule is None:
        return effect
    verdict = condition.compute(world.objects, world.taints, rule, 0)
    return msgspec.structs.replace(
        effect, status=f"{verdict.reason}: {verdict.message}".rstrip(": ")
    )


def _pretend(world: World, rules: Iterable[ObjectKey]) -> list[ObjectKey]:
    """Treats rules with effect None as if they evicted; returns these rules."""
    previewed = []
    for key in rules:
        rule = world.taints.rules.get(key.name)
        if rule is not None and rule.effect == "None":
            world.pretend(key)
            previewed.append(key)
    return previewed


def _compare(
    frozen: Frozen,
    world: World,
    before: Consequences,
    after: Consequences,
    effects: Sequence[Effect],
    bounds: BlastBounds,
    *,
    is_preview: bool,
) -> BlastRadius:
    pools = sorted(world.touched.pools)
    sides = {
        pool: (
            blasting_devices.pool_side(before.inventory, pool),
            blasting_devices.pool_side(after.inventory, pool),
        )
        for pool in pools
    }
    devices = [
        fate
        for old, new in sides.values()
        for fate in blasting_devices.device_fates(old, new, world.allocated)
    ]
    pool_fates = blasting_devices.pool_fates(before, after, sides, world.allocated)
    classes = blasting_devices.class_fates(
        before, after, pools, world.touched.classes, world.allocated
    )
    evicted = blasting_pods.pod_fates(world, before, after)
    pods = [pod for pod in evicted if (pod.namespace, pod.name) not in world.touched.pods]
    ending = removals.fates(world, {(pod.namespace, pod.name) for pod in pods})
    pods = sorted((*pods, *ending), key=lambda pod: (pod.namespace, pod.name))
    claims = blasting_claims.claim_fates(world, before, after, sides)
    releases = list(removals.releases(world))
    lost = [pod for pod in pods if pod.fate in LOST]
    namespaces = counting.namespaces(lost, claims)
    owners = counting.owners(lost)
    cut = ListCut(bounds.listed_max)
    return BlastRadius(
        revision=frozen.revision,
        time=timestamps.micro_text(frozen.now),
        effects=cut("effects", effects),
        preview=is_preview,
        notes=_notes(frozen),
        totals=counting.totals(pods, devices, sides, after.reach)
        | access.totals(before, after, world.touched.classes, world.allocated)
        | {
            "effects": len(effects),
            "pods": len(pods),
            "claims": len(claims),
            "claim_releases": len(releases),
            "namespaces": sum(item.pods > 0 for item in namespaces),
            "owners": len(owners),
            "devices": len(devices),
            "pools": len(pool_fates),
            "classes": len(classes),
        },
        pods=cut("pods", pods),
        claims=cut("claims", claims),
        claim_releases=cut("claim_releases", releases),
        namespaces=cut("namespaces", namespaces),
        owners=cut("owners", owners),
        devices=cut("devices", devices),
        pools=cut("pools", pool_fates),
        classes=cut("classes", classes),
        left_out=cut.left_out,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlacementTries:
    """The placements of waiting pods before, after, and once the evicted pods have ended."""

    before: Waiting
    after: Waiting
    ended: Waiting


def _with_waiting(
    world: World, radius: BlastRadius, tries: _PlacementTries, bounds: BlastBounds
) -> BlastRadius:
    """The answer with the fates of waiting pods."""
    after = tries.after
    fates = blasting_waiting.waiting_fates(world, tries.before, after, tries.ended)
    numbers = Counter(fate.prospect for fate in fates)
    left_out = dict(radius.left_out)
    if len(fates) > bounds.listed_max:
        left_out["waiting"] = len(fates) - bounds.listed_max
    notes = radius.notes
    if after.left_out:
        left = after.left_out
        waits = f"{counts.of(left, 'more pod')} {counts.verb(left, 'waits')}"
        notes += (f"{waits} and {counts.verb(left, 'was')} not tried",)
    return msgspec.structs.replace(
        radius,
        notes=notes,
        totals=radius.totals
        | {"waiting": len(blasting_waiting.places(tries.before, after) - world.touched.pods.keys())}
        | {f"waiting_{prospect.value}": numbers[prospect] for prospect in Prospect},
        waiting=tuple(fates[: bounds.listed_max]),
        left_out=left_out,
    )


def _notes(frozen: Frozen) -> tuple[str, ...]:
    if frozen.evicts:
        return ()
    return ("the eviction controller does not run in this history: no pod is evicted",)
