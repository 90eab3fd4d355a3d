"""Steps as numbered manifests, with a script that passes them to kubectl in order."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from app.analysis.replay.inputs import Input, is_terminating
from app.domain.controllers import registry as registry_of_controllers
from app.domain.log import EventType, ObjectKey
from app.domain.objects import first_objects, registry
from app.domain.objects import profile as profiles
from app.domain.objects.kinds import workloads
from app.domain.objects.kinds.services import ServiceRanges
from app.domain.objects.profile import Profile
from app.domain.objects.schema import conversion
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND

_SERVERS_OWN = frozenset(
    (
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
    )
)

_HEAD = """\
#!/bin/sh
# {title}
# The writes of users, drivers and kubelets, in their order; controllers do the rest.
# Writes of kubelets may fail where other kubelets have ended the pod.
# Decided so by: {server}
# KUBECTL may name another program, or one with options; WAIT=no leaves out the times between.
set -eu
cd "$(dirname "$0")"
: "${{KUBECTL:=kubectl}}"
pause() {{ [ "${{WAIT:-yes}}" = no ] || sleep "$1"; }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of the folder; a tree is written as YAML."""

    name: str
    content: str | JsonObject


@cache
def of_every_cluster() -> frozenset[ObjectKey]:
    """The objects that each API server creates at its start: kubectl could not create them."""
    return frozenset(command.key for command in first_objects.commands(ServiceRanges()))


def files(
    inputs: Sequence[Input], title: str, settings: Mapping[str, object] | None = None
) -> Iterator[File]:
    """The manifests, and `run.sh` at the end, which names a server with the history's settings.

    Where the history did not let pods wait for the claims of their volumes, claims that it does not
    have come first, as bound ones: a server would let the pods wait for them.
    """
    lines = [_HEAD.format(title=title, server=_server(settings or {}))]
    last = inputs[0].time if inputs else 0
    number = 0
    profile = profiles.from_settings(settings or {})
    is_checked = registry_of_controllers.options_from(settings or {}).checks_volumes
    for key in () if is_checked else _unrecorded_claims(inputs):
        number += 1
        name = f"{number:03}-create-{key.resource}-{key.name}.yaml"
        lines.append(f"$KUBECTL create -f {shlex.quote(name)}")
        yield File(name=name, content=_bound_claim(key))
    for step in inputs:
        if step.time - last >= SECOND:
            lines.append(f"pause {(step.time - last) // SECOND}")
        last = step.time
        for words, tree in _acts(step, profile):
            number += 1
            may_fail = " || :" if step.is_of_kubelet else ""
            if tree is None:
                lines.append(f"$KUBECTL {words}{may_fail}")
                continue
            verb = words.split()[0]
            name = f"{number:03}-{verb}-{step.event.key.resource}-{step.event.key.name}.yaml"
            lines.append(f"$KUBECTL {words} {shlex.quote(name)}{may_fail}")
            yield File(name=name, content=tree)
    yield File(name="run.sh", content="\n".join(lines) + "\n")


def _unrecorded_claims(inputs: Sequence[Input]) -> Iterator[ObjectKey]:
    """The PersistentVolumeClaims that pods and templates name and that nobody creates."""
    claims = api_resources.PERSISTENT_VOLUME_CLAIMS
    recorded = {step.event.key for step in inputs}
    for step in inputs:
        tree = step.event.object
        for pod in (tree, core.template(tree)):
            for volume in core.volumes(pod):
                key = ObjectKey(*claims, step.event.key.namespace, core.volume_claim_name(volume))
                if key.name and key not in recorded:
                    recorded.add(key)
                    yield key


def _bound_claim(key: ObjectKey) -> JsonObject:
    """A claim that counts as bound; nothing else of it is known."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1"}},
            "volumeName": "not-recorded",
        },
    }


def _server(settings: Mapping[str, Any]) -> str:
    """The command of a server that decides as the settings say."""
    words = ["redra", "up"]
    if settings.get("profile"):
        words += ["--profile", str(settings["profile"])]
    for name, value in (settings.get("gates") or {}).items():
        words += ["--gate", f"{name}={'true' if value else 'false'}"]
    for name, value in (settings.get("quirks") or {}).items():
        words += ["--quirk", f"{name}={'on' if value else 'off'}"]
    if off := (settings.get("controllers") or {}).get("off"):
        words += ["--without", ",".join(off)]
    return shlex.join(words)


def _acts(step: Input, profile: Profile) -> Iterator[tuple[str, JsonObject | None]]:
    """The arguments of kubectl, and the content of the file that it gets, if any."""
    event = step.event
    tree = _served(event.key, event.object, profile)
    if event.type is EventType.OBJECT_DELETED or (
        is_terminating(tree) and not is_terminating(step.before)
    ):
        grace = meta.deletion_grace_seconds(tree)
        now = " --grace-period=0 --force" if not grace and event.key.resource == "pods" else ""
        yield f"delete {_place(step)}{now} --wait=false --ignore-not-found", None
        return
    if step.before is None or event.type is EventType.OBJECT_CREATED:
        plain = _without_servers_own(tree)
        status = plain.pop("status", None)
        yield "create -f", plain
        if status and not _is_of_new_pod(event.key, status):
            yield (
                f"patch {_place(step)} --subresource=status --type=merge --patch-file",
                {"status": status},
            )
        return
    before = _served(event.key, step.before, profile)
    patch = _merge_patch(_without_servers_own(before), _without_servers_own(tree))
    status = patch.pop("status", None)
    if patch:
        yield f"patch {_place(step)} --type=merge --patch-file", patch
    if status:
        yield (
            f"patch {_place(step)} --subresource=status --type=merge --patch-file",
            {"status": status},
        )


def _served(key: ObjectKey, tree: JsonObject, profile: Profile) -> JsonObject:
    """The object in the version that kubectl uses with a server of the profile.

    The log has the newest version, which an older release need not serve.
    """
    kind = registry.find(key.group, key.resource)
    versions = () if kind is None else registry.served_versions(kind, profile)
    if kind is None or not versions:
        return tree
    return conversion.convert(
        tree, kind, meta.api_version(tree), "/".join(filter(None, versions[0]))
    )


def _is_of_new_pod(key: ObjectKey, status: JsonObject) -> bool:
    """Whether the API sets this status itself; the pod may be gone before it could be patched."""
    is_new = status.keys() <= {"phase", "qosClass"} and status.get("phase") == "Pending"
    return key[:2] == api_resources.PODS and is_new


def _place(step: Input) -> str:
    key = step.event.key
    namespace = f" -n {shlex.quote(key.namespace)}" if key.namespace else ""
    return f"{key.qualified_resource} {shlex.quote(key.name)}{namespace}"


def _without_servers_own(tree: JsonObject) -> JsonObject:
    metadata = {
        name: value for name, value in meta.metadata(tree).items() if name not in _SERVERS_OWN
    }
    plain = {**tree, "metadata": metadata}
    is_job = meta.kind(tree) == "Job" and meta.api_version(tree).startswith("batch/")
    return _without_selector(plain) if is_job else plain


def _without_selector(job: JsonObject) -> JsonObject:
    """The Job without its generated selector and labels: they hold the uid of another Job.

    The API refuses them in a new one. With `manualSelector` they are the author's.
    """
    spec = job.get("spec")
    if not isinstance(spec, dict) or spec.get("manualSelector") is True:
        return job
    spec = {name: value for name, value in spec.items() if name != "selector"}
    if isinstance(spec.get("template"), dict):
        spec["template"] = _without_labels(spec["template"])
    return {**_without_labels(job), "spec": spec}


def _without_labels(tree: JsonObject) -> JsonObject:
    labels = {
        name: value
        for name, value in meta.labels_of(meta.metadata(tree)).items()
        if name not in workloads.JOB_LABELS
    }
    others = {name: value for name, value in meta.metadata(tree).items() if name != "labels"}
    return {**tree, "metadata": {**others, **({"labels": labels} if labels else {})}}


def _merge_patch(before: Any, after: Any) -> Any:
    """The merge patch from one tree to another (RFC 7396)."""
    patch: JsonObject = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before:
            patch[name] = value
        elif before[name] != value:
            is_deep = isinstance(before[name], dict) and isinstance(value, dict)
            patch[name] = _merge_patch(before[name], value) if is_deep else value
    return patch
