"""What is asked to fit: a pod with its claims, read from documents, a class or a template.

Claims and templates get a pod of their own that asks for nothing else. What a document holds beside
the subject, such as a template that its pod names, is put upon the hypothetical cluster first.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.analysis import edits
from app.analysis.edits import Apply
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import core, meta, paths
from app.domain.values.json_tree import JsonObject

NAME = "redra-fit"
"""Names the pods that claims and templates get, and the templates that classes and claims get."""

_DRA = "resource.k8s.io/v1"
_CLAIM, _TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
_DEFAULT = "default"
_BESIDE = {
    (api_groups.RESOURCE, _CLAIM),
    (api_groups.RESOURCE, _TEMPLATE),
    (api_groups.RESOURCE, "DeviceClass"),
    (api_groups.RESOURCE, "ResourceSlice"),
    (api_groups.SCHEDULING, "PriorityClass"),
}
"""What may be put upon the cluster: no kind that acts on other objects, or tells of them."""

_OF_ONE_POD = ("metadata", "status")
_GIVEN = ("name", "namespace", "labels", "annotations")

_kind = paths.text("kind")
_version = paths.text("apiVersion")
_spec = paths.get("spec")
_template = paths.get("spec", "template")
_job_template = paths.get("spec", "jobTemplate", "spec", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something to be copied: `text` names it, `puts` come first, each copy is made as `pod`."""

    text: str
    pod: JsonObject
    puts: tuple[Apply, ...] = ()

    @property
    def namespace(self) -> str:
        """Where the copies are made."""
        return meta.namespace(self.pod)


def of_documents(documents: Iterable[tuple[str, object]], namespace: str) -> list[Subject]:
    """A subject for each pod in the documents, or, where there is none, for each claim or template.

    Workloads stand for their pods. Raises InputError when there is nothing to copy.
    """
    applied = [_placed(one, namespace) for one in edits.read_manifests(documents)]
    pods = [(one, pod) for one in applied if (pod := _pod_of(one)) is not None]
    for one in applied:
        if _pod_of(one) is None:
            _check_beside(one)
    if pods:
        puts = tuple(one for one in applied if _pod_of(one) is None)
        return [_of_pod(one, pod, puts) for one, pod in pods]
    claims = [one for one in applied if _kind(one.tree) in (_CLAIM, _TEMPLATE)]
    if not claims:
        raise InputError(
            "there is nothing to fit",
            place=applied[0].place if applied else "",
            cure="give a ResourceClaim, a ResourceClaimTemplate, a Pod, or what makes pods",
        )
    others = tuple(one for one in applied if one not in claims)
    return [_of_claim(one, others) for one in claims]


def of_class(name: str, namespace: str = _DEFAULT, count: int = 1) -> Subject:
    """Claims for so many devices of a class each."""
    exactly: JsonObject = {"deviceClassName": name, "count": count}
    spec: JsonObject = {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}
    text = f"DeviceClass {name}" + (f", {count} devices each" if count > 1 else "")
    return _of_spec(text, {"spec": spec}, _DRA, namespace or _DEFAULT, ())


def of_template(key: ObjectKey) -> Subject:
    """Claims of a template that is there."""
    pod = _pod_with(key.name, key.namespace)
    return Subject(text=f"{_TEMPLATE} {key.namespace}/{key.name}", pod=pod)


def of_cluster(objects: ObjectsReader, namespace: str = "") -> list[Subject]:
    """Every class and every template that there is, of one namespace or (empty) of all."""
    classes = [of_class(key.name) for key in objects.keys(*api_resources.DEVICE_CLASSES)]
    place = api_resources.RESOURCE_CLAIM_TEMPLATES
    return classes + [of_template(key) for key in objects.keys(*place, namespace or None)]


def _placed(one: Apply, namespace: str) -> Apply:
    """The object in the namespace that was asked for, unless it names another."""
    if not namespace or meta.namespace(one.tree) or not isinstance(one.tree.get("metadata"), dict):
        return one
    return Apply(
        tree={**one.tree, "metadata": {**one.tree["metadata"], "namespace": namespace}},
        place=one.place,
    )


def _check_beside(one: Apply) -> None:
    group, _ = registry.split_api_version(str(one.tree.get("apiVersion", "")))
    kind = str(one.tree.get("kind", ""))
    if (group, kind) not in _BESIDE:
        name = f"{kind or 'an object without kind'}{f' of {group}' if group else ''}"
        raise InputError(
            f"there is nothing to fit in {name}, nor may it stand beside what is to fit",
            place=one.place,
            cure="give pods, or what makes them, ResourceClaims, ResourceClaimTemplates, "
            "DeviceClasses, ResourceSlices or PriorityClasses",
        )


def _pod_of(one: Apply) -> JsonObject | None:
    """The pod itself, or the template of what makes pods."""
    if _kind(one.tree) == "Pod":
        return one.tree
    if _kind(one.tree) in (_CLAIM, _TEMPLATE):
        return None
    for template in (_template(one.tree), _job_template(one.tree)):
        if isinstance(template, dict) and isinstance(_spec(template), dict):
            return template
    return None


def _of_pod(one: Apply, pod: JsonObject, puts: tuple[Apply, ...]) -> Subject:
    kind, name = _kind(one.tree), meta.name(one.tree) or NAME
    if core.node_name(pod):
        raise InputError(
            "the pod has spec.nodeName: no scheduler looks for its node",
            place=one.place,
            cure="take it out, or use a node selector",
        )
    namespace = meta.namespace(one.tree) or _DEFAULT
    metadata = {field: value for field, value in meta.metadata(pod).items() if field in _GIVEN}
    tree: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        **{field: value for field, value in pod.items() if field not in _OF_ONE_POD},
        "metadata": {**metadata, "name": name, "namespace": namespace},
    }
    return Subject(text=f"{kind} {namespace}/{name}", pod=tree, puts=puts)


def _of_claim(one: Apply, puts: tuple[Apply, ...]) -> Subject:
    kind, name = _kind(one.tree), meta.name(one.tree) or NAME
    namespace = meta.namespace(one.tree) or _DEFAULT
    spec = _spec(one.tree)
    if not isinstance(spec, dict):
        raise InputError("it has no spec", place=one.place)
    of_template = dict(spec) if kind == _TEMPLATE else {"spec": spec}
    version = _version(one.tree)
    text = f"{kind} {namespace}/{name}"
    return _of_spec(text, of_template, version, namespace, puts, one.place)


def _of_spec(
    text: str,
    spec: JsonObject,
    version: str,
    namespace: str,
    puts: tuple[Apply, ...],
    place: str = "",
) -> Subject:
    tree: JsonObject = {
        "apiVersion": version,
        "kind": _TEMPLATE,
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": spec,
    }
    pod = _pod_with(NAME, namespace)
    return Subject(text=text, pod=pod, puts=(*puts, Apply(tree=tree, place=place)))


def _pod_with(template: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "example.com/fit",
                    "resources": {"claims": [{"name": "devices"}]},
                }
            ],
            "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": template}],
        },
    }
