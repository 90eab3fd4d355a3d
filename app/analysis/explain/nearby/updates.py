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
    """The holders (`NAMESPACE/CLAIM`) of earlier pods of the Deployment of a waiting pod.

    Pods that are being deleted are left out: their devices become free in any case.
    """
    made, deployment = _makers(views, pod)
    if made is None or deployment is None:
        return
    count = 0
    for holder in holders:
        namespace, _, name = holder.rpartition("/")
        key = claim_key(namespace, name)
        for consumer in dra.consumers(views.objects.get(key) or {}):
            place = ObjectKey(*api_resources.PODS, namespace, consumer.name)
            other = views.objects.get(place) or {}
            makers = _makers(views, other)
            if makers[1] != deployment or makers[0] == made:
                continue
            # Pods of the newer ReplicaSet may hold devices, too, while one of the older waits.
            is_earlier = meta.creation_timestamp(other) < meta.creation_timestamp(pod)
            if not is_earlier or meta.is_deleting(other):
                continue
            text = f"claim {holder} is held by pod {namespace}/{consumer.name}, an earlier pod of "
            text += f"the same deployment {namespace}/{deployment.name}; a rolling update keeps "
            yield Reason(
                text=f"{text}it until new pods are ready",
                about=key,
                is_kept=True,
                rests_on=tuple(
                    ObjectKey(*api_resources.REPLICA_SETS, namespace, owner.name)
                    for owner in (made, makers[0])
                    if owner is not None
                ),
            )
            count += 1
            if count == NAMES_MAX:
                return


def _makers(views: LiveViews, pod: JsonObject) -> tuple[Owner | None, Owner | None]:
    """The ReplicaSet that made a pod, and the Deployment that made that."""
    made = meta.controller(pod)
    if made is None or made.kind != "ReplicaSet":
        return None, None
    key = ObjectKey(*api_resources.REPLICA_SETS, meta.namespace(pod), made.name)
    return made, meta.controller(views.objects.get(key) or {})
