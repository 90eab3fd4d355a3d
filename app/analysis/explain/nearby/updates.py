"""Pods of the same Deployment that hold what a new pod of it waits for."""

from collections.abc import Iterable, Iterator

from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.controllers.resources import claim_key
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.fields.meta import Owner
from app.domain.values.json_tree import JsonObject


def held(views: LiveViews, pod: JsonObject, holders: Iterable[str]) -> Iterator[Reason]:
    """The holders (`NAMESPACE/CLAIM`) of earlier pods of the Deployment of a waiting pod."""
    made, deployment = _makers(views, pod)
    if made is None or deployment is None:
        return
    count = 0
    for holder in holders:
        namespace, _, name = holder.rpartition("/")
        key = claim_key(namespace, name)
        for consumer in dra.consumers(views.objects.get(key) or {}):
            other = views.objects.get(ObjectKey(*api_resources.PODS, namespace, consumer.name))
            makers = _makers(views, other or {})
            if makers[1] != deployment or makers[0] == made or count == NAMES_MAX:
                continue
            count += 1
            text = f"claim {holder} is held by pod {namespace}/{consumer.name}, an earlier pod of "
            text += f"the same deployment {namespace}/{deployment.name}, whose update waits for "
            yield Reason(text=f"{text}this pod", about=key, is_kept=True)


def _makers(views: LiveViews, pod: JsonObject) -> tuple[Owner | None, Owner | None]:
    """The ReplicaSet that made a pod, and the Deployment that made that."""
    made = meta.controller(pod)
    if made is None or made.kind != "ReplicaSet":
        return None, None
    key = ObjectKey(*api_resources.REPLICA_SETS, meta.namespace(pod), made.name)
    return made, meta.controller(views.objects.get(key) or {})
