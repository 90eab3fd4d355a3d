"""Deployment: one ReplicaSet per pod template, and the rollout from the old ones to the new one.

A scale-down keeps the pods that must be available, a scale-up never exceeds the surge.
Parity: controllers.md 5.5 (order of writes, texts, annotations).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.workloads import deployment_status, pods_of, templates
from app.domain.controllers.workloads.answer import Report, Situation, Step, WorkloadSteps
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject, DeleteObject, UpdateObject
from app.domain.values import api_resources, decimals, json_tree, well_known
from app.domain.values.api_groups import APPS_V1
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView

REVISION = well_known.DEPLOYMENT_REVISION
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HISTORY_DEFAULT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rollout:
    """A Deployment with its ReplicaSets, oldest first; `new` is the one of the present template."""

    situation: Situation
    replicas: int
    surge: int
    unavailable: int
    recreates: bool
    new: JsonObject | None
    old: tuple[JsonObject, ...]
    revision: int

    @property
    def all(self) -> tuple[JsonObject, ...]:
        return self.old if self.new is None else (*self.old, self.new)

    @property
    def maximum(self) -> int:
        """The most pods at a time."""
        return self.replicas + self.surge


def sync(situation: Situation) -> WorkloadSteps:
    """Creates or scales ReplicaSets; when none needs it, writes the status."""
    rollout = _rollout(situation)
    if not situation.is_ending:
        steps = _scaling(rollout)
        if steps:
            return WorkloadSteps(steps=tuple(steps))
    return deployment_status.answer(
        situation,
        rollout.new,
        rollout.all,
        replicas=rollout.replicas,
        unavailable_max=rollout.unavailable,
        annotations={REVISION: str(rollout.revision)} if rollout.new is not None else {},
    )


def _rollout(situation: Situation) -> _Rollout:
    tree = situation.tree
    sets = sorted(
        situation.owned(api_resources.REPLICA_SETS),
        key=lambda replica_set: (
            meta.creation_timestamp(replica_set),
            meta.name(replica_set),
        ),
    )
    wanted = templates.text_of(templates.template_of(tree))
    new = next(
        (s for s in sets if templates.text_of(templates.template_of(s)) == wanted),
        None,
    )
    old = tuple(one_set for one_set in sets if one_set is not new)
    replicas = core.replicas(tree) or 0
    strategy = json_tree.mapping(tree, "spec", "strategy")
    rolling = json_tree.mapping(strategy, "rollingUpdate")
    recreates = strategy.get("type") == "Recreate"
    surge = 0 if recreates else decimals.share(rolling.get("maxSurge"), replicas, rounds_up=True)
    unavailable = (
        0 if recreates else decimals.share(rolling.get("maxUnavailable"), replicas, rounds_up=False)
    )
    if not recreates and not surge and not unavailable:
        unavailable = 1
    newest_old = max((_revision(one_set) for one_set in old), default=0)
    own = _revision(new) if new is not None else 0
    return _Rollout(
        situation=situation,
        replicas=replicas,
        surge=surge,
        unavailable=min(unavailable, replicas),
        recreates=recreates,
        new=new,
        old=old,
        revision=own if own > newest_old else newest_old + 1,
    )


def _scaling(rollout: _Rollout) -> list[Step]:
    """The steps for the ReplicaSets, one kind of step at a time."""
    if json_tree.flag(rollout.situation.tree, "spec", "paused"):
        return _paused(rollout)
    if rollout.recreates:
        steps = _scale_all(rollout, rollout.old, 0)
        if steps or _has_old_pods(rollout):
            return steps
    if rollout.new is None:
        return _create_set(rollout)
    steps = _renew(rollout, rollout.new)
    if steps:
        return steps
    if not rollout.recreates:
        steps = _shrink_old(rollout, rollout.new)
    return steps or _forget_old(rollout)


def _paused(rollout: _Rollout) -> list[Step]:
    """The steps while paused: only the newest set with pods follows the wanted number."""
    active = [replica_set for replica_set in rollout.all if _wanted(replica_set)] or list(
        rollout.all[-1:]
    )
    if len(active) == 1 and _wanted(active[0]) != rollout.replicas:
        return _scale(rollout, active[0], rollout.replicas)
    return []


def _has_old_pods(rollout: _Rollout) -> bool:
    """Whether pods of old sets still exist, for which the strategy Recreate waits."""
    uids = {meta.uid(replica_set) for replica_set in rollout.old}
    objects = rollout.situation.objects
    for uid in uids:
        for key in objects.dependents(uid):
            pod = objects.get(key) if (key.group, key.resource) == api_resources.PODS else None
            if pod is not None and not core.is_finished(pod):
                return True
    return False


def _create_set(rollout: _Rollout) -> list[Step]:
    situation = rollout.situation
    template = templates.template_of(situation.tree)
    name, code = _free_name(situation, template)
    label = {templates.HASH_LABEL: code}
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = meta.labels_of(metadata) | label
    selector: JsonObject = json_tree.copy(dict(core.selector(situation.tree)))
    selector["matchLabels"] = json_tree.labels(selector, "matchLabels") | label
    count = _room(rollout, 0)
    tree: JsonObject = {
        "apiVersion": APPS_V1,
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": situation.key.namespace,
            "labels": dict(metadata["labels"]),
            "annotations": _annotations(rollout, situation.tree, is_new=True),
            "ownerReferences": [pods_of.owner_reference(situation, APPS_V1, "Deployment")],
        },
        "spec": {"replicas": count, "selector": selector, "template": template},
    }
    if seconds := core.min_ready_seconds(situation.tree):
        tree["spec"]["minReadySeconds"] = seconds
    key = ObjectKey(*api_resources.REPLICA_SETS, situation.key.namespace, name)
    steps: list[Step] = [CreateObject(key=key, version="v1", tree=tree, options=MANAGER)]
    if count:
        steps.append(_scaled(name, 0, count))
    return steps


def _free_name(situation: Situation, template: JsonView) -> tuple[str, str]:
    """The name and hash of a new set; a salt is added while the name is taken."""
    salt = ""
    while True:
        code = templates.hash_of(template, salt)
        name = f"{situation.key.name}-{code}"
        key = ObjectKey(*api_resources.REPLICA_SETS, situation.key.namespace, name)
        if situation.objects.event(key) is None:
            return name, code
        salt += "+"


def _renew(rollout: _Rollout, new: JsonObject) -> list[Step]:
    """Scales the set of the current template and updates its annotations."""
    wanted = _wanted(new)
    if wanted > rollout.replicas:
        target = rollout.replicas
    else:
        target = wanted + _room(rollout, wanted)
    return _scale(rollout, new, target, is_new=True)


def _room(rollout: _Rollout, wanted: int) -> int:
    """The number of pods that the new set may get in addition to `wanted`."""
    missing = rollout.replicas - wanted
    if rollout.recreates:
        return missing
    present = wanted + sum(_wanted(replica_set) for replica_set in rollout.old)
    return max(0, min(missing, rollout.maximum - present))


def _shrink_old(rollout: _Rollout, new: JsonObject) -> list[Step]:
    """Scales old sets down: first unavailable pods, then pods that are not needed."""
    present = sum(_wanted(replica_set) for replica_set in rollout.all)
    least = rollout.replicas - rollout.unavailable
    new_missing = max(0, _wanted(new) - _available(new))
    spare = present - least - new_missing
    targets = [_wanted(replica_set) for replica_set in rollout.old]
    for number, replica_set in enumerate(rollout.old):
        unhealthy = min(spare, max(0, targets[number] - _available(replica_set)))
        if unhealthy > 0:
            targets[number] -= unhealthy
            spare -= unhealthy
    available = sum(_available(replica_set) for replica_set in rollout.all)
    healthy = min(spare, available - least)
    for number, target in enumerate(targets):
        down = min(healthy, target)
        if down > 0:
            targets[number] -= down
            healthy -= down
    steps: list[Step] = []
    for replica_set, target in zip(rollout.old, targets, strict=True):
        steps += _scale(rollout, replica_set, target)
    return steps


def _forget_old(rollout: _Rollout) -> list[Step]:
    """Deletes the oldest empty sets beyond the history limit, when the rollout is complete."""
    limit = json_tree.integer(rollout.situation.tree, "spec", "revisionHistoryLimit")
    limit = HISTORY_DEFAULT if limit is None else limit
    empty = [
        replica_set
        for replica_set in sorted(rollout.old, key=_revision)
        if not _wanted(replica_set) and not json_tree.integer(replica_set, "status", "replicas")
    ]
    surplus = len(empty) - limit
    return [
        DeleteObject(
            key=ObjectKey(
                *api_resources.REPLICA_SETS, rollout.situation.key.namespace, s["metadata"]["name"]
            ),
            uid=meta.uid(s),
            options=MANAGER,
        )
        for s in empty[: max(0, surplus)]
        if "deletionTimestamp" not in s["metadata"]
    ]


def _scale_all(rollout: _Rollout, sets: Sequence[JsonObject], target: int) -> list[Step]:
    steps: list[Step] = []
    for replica_set in sets:
        if _wanted(replica_set) != target:
            steps += _scale(rollout, replica_set, target)
    return steps


def _scale(
    rollout: _Rollout, replica_set: JsonObject, target: int, *, is_new: bool = False
) -> list[Step]:
    """Writes a set's number and annotations when they differ."""
    before = _wanted(replica_set)
    name = meta.name(replica_set)
    annotations = meta.annotations(replica_set)
    wanted = annotations | _annotations(rollout, replica_set, is_new=is_new)
    if before == target and annotations == wanted:
        return []
    tree = json_tree.copy(replica_set)
    tree["spec"]["replicas"] = target
    tree["metadata"]["annotations"] = wanted
    tree["metadata"].pop("resourceVersion", None)
    key = ObjectKey(*api_resources.REPLICA_SETS, rollout.situation.key.namespace, name)
    steps: list[Step] = [UpdateObject(key=key, version="v1", tree=tree, options=MANAGER)]
    if before != target:
        steps.append(_scaled(name, before, target))
    return steps


def _scaled(name: str, before: int, after: int) -> Report:
    direction = "up" if after > before else "down"
    return Report(
        reason="ScalingReplicaSet",
        message=f"Scaled {direction} replica set {name} from {before} to {after}",
    )


def _annotations(rollout: _Rollout, source: JsonView, *, is_new: bool) -> dict[str, str]:
    annotations = meta.annotations(source)
    annotations.pop(well_known.LAST_APPLIED, None)
    annotations |= {DESIRED: str(rollout.replicas), MAXIMUM: str(rollout.maximum)}
    if is_new:
        annotations[REVISION] = str(rollout.revision)
    return annotations


def _wanted(replica_set: JsonView) -> int:
    return core.replicas(replica_set) or 0


def _available(replica_set: JsonView) -> int:
    return json_tree.integer(replica_set, "status", "availableReplicas") or 0


def _revision(replica_set: JsonView) -> int:
    return decimals.natural(meta.annotation(replica_set, REVISION)) or 0
