"""The binding of a pod to a node. Parity: controllers.md 4.6."""

from app.domain.log import Draft, EventType, ObjectKey, Stamp
from app.domain.objects import rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.write import admission, metadata, review_calls
from app.domain.objects.write.commands import BindPod
from app.domain.objects.write.context import WriteContext
from app.domain.objects.write.decided import Decided
from app.domain.values import api_groups, condition_types, timestamps, well_known
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject, JsonView

TOPOLOGY_LABELS = (well_known.REGION, well_known.ZONE)


def decide_binding(reader: ObjectsReader, command: BindPod, stamp: Stamp, rules: Rules) -> Decided:
    """Assigns the pod to its node, with condition PodScheduled and the node's topology labels.

    Raises NotFound, or Conflict for a pod that is terminating, assigned, gated or has another uid.
    """
    kind = admission.find_kind(reader, command.key, "v1", rules)
    old = reader.get(command.key)
    if old is None:
        raise rejections.not_found(kind, command.key.name)
    _check(kind, command, old)
    write = WriteContext(
        reader=reader,
        rules=rules,
        stamp=stamp,
        kind=kind,
        key=command.key,
        group=api_groups.CORE,
        version="v1",
        subresource="binding",
        options=command.options,
    )
    warnings = review_calls.ask(write, review_calls.CREATE, tree=_binding(command), old=None)
    node = reader.get(ObjectKey(api_groups.CORE, "nodes", "", command.node))
    tree = dict(old)
    tree["spec"] = {**meta.spec(old), "nodeName": command.node}
    tree["status"] = _status(old, timestamps.seconds_text(stamp.time), rules)
    tree["metadata"] = _metadata(old, command, node, rules)
    if command.options.dry_run:
        return Decided(tree=tree, warnings=warnings)
    uid: Uid = metadata.of(old).get("uid") or NO_UID
    draft = Draft(type=EventType.OBJECT_UPDATED, key=command.key, uid=uid, tree=tree, stamp=stamp)
    return Decided(drafts=(draft,), tree=tree, warnings=warnings)


def _binding(command: BindPod) -> JsonObject:
    """The Binding object of the command."""
    written: JsonObject = {"name": command.key.name, "namespace": command.key.namespace}
    for name, value in (
        ("uid", command.uid),
        ("labels", command.labels),
        ("annotations", command.annotations),
    ):
        if value:
            written[name] = value
    target = {"apiVersion": "v1", "kind": "Node", "name": command.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": written, "target": target}


def _check(kind: Kind, command: BindPod, pod: JsonObject) -> None:
    name = command.key.name
    uid = metadata.of(pod).get("uid", "")
    detail = ""
    if command.uid and command.uid != uid:
        raise rejections.uid_conflict(kind, command.key, command.uid, uid)
    if metadata.is_terminating(pod):
        detail = f"pod {name} is being deleted, cannot be assigned to a host"
    elif core.node_name(pod):
        node = core.node_name(pod)
        detail = f'pod {name} is already assigned to node "{node}"'
    elif core.scheduling_gates(pod):
        detail = f"pod {name} has non-empty .spec.schedulingGates"
    if detail:
        raise rejections.subresource_conflict(kind, "binding", name, detail)


def _status(pod: JsonView, now: str, rules: Rules) -> JsonObject:
    status = dict(meta.status(pod))
    if rules.profile.enabled("ClearingNominatedNodeNameAfterBinding"):
        status.pop("nominatedNodeName", None)
    scheduled: JsonObject = {
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "status": "True",
        "type": condition_types.POD_SCHEDULED,
    }
    conditions = meta.conditions_of(status)
    places = [
        place
        for place, each in enumerate(conditions)
        if each.get("type") == condition_types.POD_SCHEDULED
    ]
    if places:
        old = conditions[places[0]]
        if old.get("status") == "True" and old.get("lastTransitionTime"):
            scheduled["lastTransitionTime"] = old["lastTransitionTime"]
        conditions[places[0]] = scheduled
    else:
        conditions.append(scheduled)
    status["conditions"] = conditions
    return status


def _metadata(pod: JsonView, command: BindPod, node: JsonObject | None, rules: Rules) -> JsonObject:
    """The pod's metadata with the node's topology labels; the pod's own labels have priority.

    Annotations of the command replace the pod's.
    """
    own_metadata = dict(meta.metadata(pod))
    added = dict(command.labels)
    if node is not None and rules.profile.enabled("PodTopologyLabelsAdmission"):
        theirs = meta.labels(node)
        added |= {key: theirs[key] for key in TOPOLOGY_LABELS if key in theirs}
    if added:
        own_metadata["labels"] = added | meta.labels_of(own_metadata)
    if command.annotations:
        own_metadata["annotations"] = meta.annotations_of(own_metadata) | command.annotations
    return own_metadata
