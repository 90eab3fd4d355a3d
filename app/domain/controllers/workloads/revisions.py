"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had."""

from dataclasses import dataclass

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.workloads import pods_of, templates
from app.domain.controllers.workloads.answer import Situation
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import Command, CreateObject
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The revision of the current template: name, hash, and the command that records it."""

    name: str
    hash: str
    create: Command | None


def present(situation: Situation, kind: str) -> Revision:
    """The existing or new revision of the current template."""
    template = templates.template_of(situation.tree)
    code = templates.hash_of(template)
    name = f"{situation.key.name}-{code}"
    key = ObjectKey(*api_resources.CONTROLLER_REVISIONS, situation.key.namespace, name)
    if situation.objects.event(key) is not None:
        return Revision(name=name, hash=code, create=None)
    number = 1 + max(
        (
            json_tree.integer(revision, "revision") or 0
            for revision in situation.owned(api_resources.CONTROLLER_REVISIONS)
        ),
        default=0,
    )
    labels = meta.labels(template)
    tree: JsonObject = {
        "apiVersion": api_groups.APPS_V1,
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": situation.key.namespace,
            "labels": labels | {templates.REVISION_LABEL: code},
            "ownerReferences": [pods_of.owner_reference(situation, api_groups.APPS_V1, kind)],
        },
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": number,
    }
    made = CreateObject(key=key, version="v1", tree=tree, options=MANAGER)
    return Revision(name=name, hash=code, create=made)


def template_at(situation: Situation, name: str) -> JsonView:
    """The template of a recorded revision; the current one when the revision no longer exists."""
    key = ObjectKey(*api_resources.CONTROLLER_REVISIONS, situation.key.namespace, name)
    revision = situation.objects.get(key)
    if revision is None:
        return core.template(situation.tree)
    template = dict(json_tree.mapping(revision, "data", "spec", "template"))
    template.pop("$patch", None)
    return template
