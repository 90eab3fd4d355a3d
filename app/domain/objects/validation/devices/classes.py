"""Validation of DeviceClasses. Parity: objects.md 4."""

from typing import Any

from app.domain.objects.field_errors import FieldError, invalid
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

CONFIGS_MAX = 32


def create(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new DeviceClass."""
    return _spec(tree, None, context)


def update(tree: JsonView, old: JsonView, _subresource: str, context: Context) -> list[FieldError]:
    """Checks a changed DeviceClass: equal selectors and configurations are not checked again."""
    return _spec(tree, old, context)


def _spec(tree: JsonView, old: JsonView | None, context: Context) -> list[FieldError]:
    stored = None if old is None else meta.spec(old)
    configs = json_tree.get(tree, "spec", "config")
    unchanged = stored is not None and configs == stored.get("config")
    errors = shared.selectors(
        json_tree.get(tree, "spec", "selectors"),
        "spec.selectors",
        context,
        stored=None if stored is None else stored.get("selectors") or [],
    )
    errors += shared.bounded(
        configs,
        "spec.config",
        CONFIGS_MAX,
        lambda item, place: shared.opaque(item, place, unchanged=unchanged),
    )
    return errors + _extended_resource(json_tree.get(tree, "spec", "extendedResourceName"))


def _extended_resource(name: Any) -> list[FieldError]:
    if name is None:
        return []
    text = name if isinstance(name, str) else ""
    domain, slash, _ = text.partition("/")
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    good = bool(slash) and not native and not text.startswith("requests.")
    if good and not names.label_name(f"requests.{text}"):
        return []
    return [invalid("spec.extendedResourceName", name, "must be a valid extended resource name")]
