"""Cells that several tables have: name, age, containers of a template, selectors."""

from app.domain.objects.printing.durations import age_of
from app.domain.objects.printing.tables import NONE
from app.domain.values import json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant


def name(tree: JsonView) -> str:
    """The object's name."""
    return meta.name(tree)


def age(tree: JsonView, now: Instant) -> str:
    """The time since it was made."""
    return age_of(tree, now, "metadata", "creationTimestamp")


def created_at(tree: JsonView) -> str:
    """When it was made."""
    return meta.creation_timestamp(tree)


def replicas(tree: JsonView) -> int:
    """How many replicas are wanted; 1 when it is not said."""
    found = core.replicas(tree)
    return 1 if found is None else found


def template(tree: JsonView, *path: str) -> tuple[str, str]:
    """Names and images of the containers in a pod template, by default `spec.template`."""
    place = path or ("spec", "template")
    containers = json_tree.objects(tree, *place, "spec", "containers")
    names = ",".join(json_tree.text(container, "name") for container in containers)
    images = ",".join(json_tree.text(container, "image") for container in containers)
    return names, images


def selector(labels: dict[str, str]) -> str:
    """Labels as `a=b,c=d`."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def label_selector(tree: JsonView, *path: str) -> str:
    """The labels of a selector, by default `spec.selector`."""
    return selector(json_tree.labels(tree, *(path or ("spec", "selector")), "matchLabels"))
