"""The subjects that are to fit: pods with claims read from documents, classes, or templates.

Claims and templates get a pod of their own that requests nothing else. Other objects of a document,
such as a template that its pod names, are put on the hypothetical cluster first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.analysis import edits, scope
from app.analysis.edits import Apply
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, api_resources, counts
from app.domain.values.fields import core, meta, paths
from app.domain.values.json_tree import JsonObject

NAME = "redra-fit"
"""The name of the pods for claims and templates, and of the templates for classes and claims."""

_DRA = f"{api_groups.RESOURCE}/v1"
_CLAIM, _TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
Words: TypeAlias = tuple[tuple[str, str], ...]
"""Words of generated objects, each with the user's word to be shown in its place."""

_DEFAULT = "default"
_NAMES_MAX = 10
_OF_CLAIMS: Words = (
    (_TEMPLATE, _CLAIM),
    ("resourceclaimtemplate", "resourceclaim"),
    ("spec.spec", "spec"),
)
"""The replacements in messages about a claim, which is put as a template."""

_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))
_BESIDE = {
    (api_groups.RESOURCE, _CLAIM),
    (api_groups.RESOURCE, _TEMPLATE),
    (api_groups.RESOURCE, "DeviceClass"),
    (api_groups.RESOURCE, "ResourceSlice"),
    (api_groups.SCHEDULING, "PriorityClass"),
}
"""The kinds that may be put on the cluster: none that acts on or reports about other objects."""

_OF_ONE_POD = ("metadata", "status")
_GIVEN = ("name", "namespace", "labels", "annotations")

_spec = paths.get("spec")
_template = paths.get("spec", "template")
_job_template = paths.get("spec", "jobTemplate", "spec", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacitySubject:
    """A subject to copy: `text` names it, each copy is created as `pod`.

    `beside` and then `puts` come first; `beside` is shared by the subjects of one question. `words`
    map names in generated objects to those that the user wrote. With a `problem` it cannot be
    copied.
    """

    text: str
    pod: JsonObject
    puts: tuple[Apply, ...] = ()
    beside: tuple[Apply, ...] = ()
    words: Words = ()
    problem: InputError | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the copies."""
        return meta.namespace(self.pod)


def of_documents(documents: Iterable[tuple[str, object]], namespace: str) -> list[CapacitySubject]:
    """A subject for each pod in the documents, or, without pods, for each claim or template.

    Workloads stand for their pods. Raises InputError when there is nothing to copy.
    """
    applied = [_placed(one, namespace) for one in edits.read_manifests(documents)]
    pods = [(one, pod) for one in applied if (pod := _pod_of(one)) is not None]
    for one in applied:
        if _pod_of(one) is None:
            _check_beside(one)
    if pods:
        beside = tuple(one for one in applied if _pod_of(one) is None)
        return [_of_pod(one, pod, beside) for one, pod in pods]
    claims = [one for one in applied if meta.kind(one.tree) in (_CLAIM, _TEMPLATE)]
    if not claims:
        raise InputError(
            "there is nothing to fit",
            place=applied[0].place if applied else "",
            cure="give a ResourceClaim, a ResourceClaimTemplate, a Pod, or what makes pods",
        )
    others = tuple(one for one in applied if meta.kind(one.tree) not in (_CLAIM, _TEMPLATE))
    return [_of_claim(one, others) for one in claims]


def of_class(name: str, namespace: str = _DEFAULT, count: int = 1) -> CapacitySubject:
    """A subject of claims for `count` devices of a class each."""
    exactly: JsonObject = {"deviceClassName": name, "count": count}
    spec: JsonObject = {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}
    text = f"DeviceClass {name}" + (f", {count} devices each" if count > 1 else "")
    namespace = namespace or _DEFAULT
    put = Apply(tree=_template_with({"spec": spec}, _DRA, namespace))
    return CapacitySubject(text=text, pod=_pod_with(NAME, namespace), puts=(put,))


def check_class(objects: ObjectsReader, name: str) -> None:
    """Raises InputError, which names the existing classes, if the class does not exist."""
    if objects.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", name)) is not None:
        return
    names = sorted(key.name for key in objects.keys(*api_resources.DEVICE_CLASSES))
    raise InputError(f"there is no DeviceClass {name}", cure=_existing(names))


def check_template(objects: ObjectsReader, key: ObjectKey) -> None:
    """Raises InputError if the template does not exist.

    It names the namespaces that have one of that name, else similar ones of the namespace, else
    those that exist there, else those of all namespaces.
    """
    if objects.get(key) is not None:
        return
    known = list(objects.keys(key.group, key.resource))
    places = [each.namespace for each in known if each.name == key.name]
    own = [each.name for each in known if each.namespace == key.namespace]
    if places:
        noun = counts.plural(len(places), "namespace")
        cure = f"there is one in {noun} {', '.join(places[:_NAMES_MAX])}"
    else:
        every = [f"{each.namespace}/{each.name}" for each in known]
        cure = scope.nearest(key.name, own) or _existing(own or every)
    raise InputError(f"there is no {_TEMPLATE} {key.namespace}/{key.name}", cure=cure)


def _existing(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_MAX])
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"there are {shown}{more}" if len(names) > 1 else f"there is {shown or 'none'}"


def of_template(key: ObjectKey) -> CapacitySubject:
    """A subject of claims from an existing template."""
    pod = _pod_with(key.name, key.namespace)
    return CapacitySubject(text=f"{_TEMPLATE} {key.namespace}/{key.name}", pod=pod)


def of_cluster(objects: ObjectsReader, namespace: str = "") -> list[CapacitySubject]:
    """Every existing class and template, of one namespace or (empty) of all."""
    classes = [of_class(key.name) for key in objects.keys(*api_resources.DEVICE_CLASSES)]
    place = api_resources.RESOURCE_CLAIM_TEMPLATES
    return classes + [of_template(key) for key in objects.keys(*place, namespace or None)]


def _placed(one: Apply, namespace: str) -> Apply:
    """The object in the requested namespace, unless it names another."""
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
            f"{name} has no pods or claims to fit, and cannot accompany them",
            place=one.place,
            cure="give pods, or what makes them, ResourceClaims, ResourceClaimTemplates, "
            "DeviceClasses, ResourceSlices or PriorityClasses",
        )


def _pod_of(one: Apply) -> JsonObject | None:
    """The pod itself, or the pod template of a workload."""
    if meta.kind(one.tree) == "Pod":
        return one.tree
    if meta.kind(one.tree) in (_CLAIM, _TEMPLATE):
        return None
    for template in (_template(one.tree), _job_template(one.tree)):
        if isinstance(template, dict) and isinstance(_spec(template), dict):
            return template
    return None


def _of_pod(one: Apply, pod: JsonObject, beside: tuple[Apply, ...]) -> CapacitySubject:
    kind, name = meta.kind(one.tree), meta.name(one.tree) or NAME
    namespace = meta.namespace(one.tree) or _DEFAULT
    text = f"{kind} {namespace}/{name}"
    problem = None
    if kind == "DaemonSet":
        problem = InputError(
            "a DaemonSet makes one pod for each node: how many more fit is not the question",
            place=one.place,
            cure="give its pod template as a Pod",
        )
    if core.node_name(pod):
        problem = InputError(
            "the pod has spec.nodeName: no scheduler looks for its node",
            place=one.place,
            cure="take it out, or use a node selector",
        )
    metadata = {field: value for field, value in meta.metadata(pod).items() if field in _GIVEN}
    tree: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        **{field: value for field, value in pod.items() if field not in _OF_ONE_POD},
        "metadata": {**metadata, "name": name, "namespace": namespace},
    }
    return CapacitySubject(text=text, pod=tree, beside=beside, problem=problem)


def _of_claim(one: Apply, beside: tuple[Apply, ...]) -> CapacitySubject:
    kind, name = meta.kind(one.tree), meta.name(one.tree) or NAME
    namespace = meta.namespace(one.tree) or _DEFAULT
    text, spec = f"{kind} {namespace}/{name}", _spec(one.tree)
    problem = None
    if unknown := sorted(set(map(str, one.tree)) - _FIELDS):
        problem = InputError(f'{text} has an unknown field "{unknown[0]}"', place=one.place)
    elif not isinstance(spec, dict):
        problem = InputError(f"{text} has no spec", place=one.place)
    if problem is not None or not isinstance(spec, dict):
        return CapacitySubject(text=text, pod={}, beside=beside, problem=problem)
    of_template = dict(spec) if kind == _TEMPLATE else {"spec": spec}
    tree = _template_with(of_template, meta.api_version(one.tree), namespace)
    return CapacitySubject(
        text=text,
        pod=_pod_with(NAME, namespace),
        puts=(Apply(tree=tree, place=one.place),),
        beside=beside,
        words=(
            (f'"{NAME}"', f'"{name}"'),
            (f"/{NAME};", f"/{name};"),
            *(() if kind == _TEMPLATE else _OF_CLAIMS),
        ),
    )


def _template_with(spec: JsonObject, version: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": version,
        "kind": _TEMPLATE,
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": spec,
    }


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
