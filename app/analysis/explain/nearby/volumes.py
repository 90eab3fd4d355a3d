"""Volumes of a pod that keep it from nodes, which redra's scheduler does not look at."""

from collections.abc import Iterator

from app.analysis.explain import waits
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject


def reasons(views: LiveViews, pod: JsonObject) -> Iterator[Reason]:
    """The volume claims of a pod that are missing or not bound, and the nodes of its volumes."""
    names = [
        json_tree.text(volume, "persistentVolumeClaim", "claimName") for volume in core.volumes(pod)
    ]
    for name in [*dict.fromkeys(filter(None, names))][:NAMES_MAX]:
        key = ObjectKey(*api_resources.PERSISTENT_VOLUME_CLAIMS, meta.namespace(pod), name)
        yield _of_claim(views, key, views.objects.get(key))


def _of_claim(views: LiveViews, key: ObjectKey, claim: JsonObject | None) -> Reason:
    subject = f"persistentvolumeclaim {key.namespace}/{key.name}"
    if claim is None:
        text = f"{subject} does not exist"
        return Reason(text=text, rests_on=(key,), denies=(key.resource,), is_kept=True)
    spec = meta.spec(claim)
    text = f"{subject} is {meta.phase(claim) or 'not bound'}"
    if volume := str(spec.get("volumeName") or ""):
        return _of_volume(views, key, text, volume)
    name = str(spec.get("storageClassName") or "")
    storage_class = ObjectKey(*api_resources.STORAGE_CLASSES, "", name)
    text += f", of storageclass {name}" if name else ", without a storageclass"
    is_missing = bool(name) and views.objects.get(storage_class) is None
    return Reason(
        text=f"{text}, which does not exist" if is_missing else text,
        about=key,
        rests_on=(key, storage_class) if name else (key,),
        denies=(storage_class.resource,) if is_missing else (),
        is_kept=True,
    )


def _of_volume(views: LiveViews, key: ObjectKey, text: str, name: str) -> Reason:
    """The nodes that the volume of a claim is for."""
    volume = ObjectKey(*api_resources.PERSISTENT_VOLUMES, "", name)
    tree = views.objects.get(volume) or {}
    required = json_tree.objects(meta.spec(tree), "nodeAffinity", "required", "nodeSelectorTerms")
    terms = [*map(waits.term_text, required)]
    text += f", with volume {name}"
    text += f", which is for nodes with {' or '.join(terms)}" if terms else ""
    return Reason(text=text, about=key, rests_on=(key, volume), is_kept=True)
