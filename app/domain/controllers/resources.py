"""The keys of the objects that controllers read, and lists of them."""

from app.domain.log import ObjectKey
from app.domain.values import api_resources


def pod_key(namespace: str, name: str) -> ObjectKey:
    """The key of a pod."""
    return ObjectKey(*api_resources.PODS, namespace, name)


def claim_key(namespace: str, name: str) -> ObjectKey:
    """The key of a claim."""
    return ObjectKey(*api_resources.RESOURCE_CLAIMS, namespace, name)


def is_of(key: ObjectKey, place: tuple[str, str]) -> bool:
    """True when the key belongs to that group and resource."""
    return key.resource == place[1] and key.group == place[0]
