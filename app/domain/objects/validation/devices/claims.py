"""Validation of ResourceClaims and ResourceClaimTemplates. Parity: objects.md 5 and 6."""

from typing import Any

from app.domain.log.chain import canonical_json
from app.domain.objects.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.schema.equality import is_unchanged
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.devices import claim_status
from app.domain.objects.validation.go_form import claim_spec_in_go
from app.domain.values import json_tree, names, well_known
from app.domain.values.fields import dra, entries, meta
from app.domain.values.json_tree import JsonView

REQUESTS_MAX = 32
ALTERNATIVES_MAX = 8
CONSTRAINTS_MAX = 32
CONFIGS_MAX = 32

ADMIN_TEXT = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on "
    "the containing namespace"
)
ONE_OF_TEXT = "exactly one of `exactly` or `firstAvailable` is required"
MODES = ("All", "ExactCount")


_NOT_IN_TEMPLATES = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

FLAWLESS_BYTES_MAX = 8_192
"""The largest size of a cached spec in bytes; a longer spec is checked each time."""


def create(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new ResourceClaim."""
    spec = meta.spec(tree)
    return _check_new_spec(spec, context) + _admin_access(spec, context)


def _check_new_spec(spec: JsonView, context: Context) -> list[FieldError]:
    """Checks a spec with `check_spec`, unless an equal spec is cached as valid."""
    text = canonical_json(spec)
    if text in context.flawless_specs:
        return []
    errors = check_spec(spec, "spec", context)
    if not errors and len(text) <= FLAWLESS_BYTES_MAX:
        context.flawless_specs[text] = None
    return errors


def update(tree: JsonView, old: JsonView, subresource: str, context: Context) -> list[FieldError]:
    """Checks a changed ResourceClaim: the spec is immutable, the status has its own rules."""
    if subresource == "status":
        return claim_status.update(tree, old, context, known=request_references(tree))
    new_spec, old_spec = meta.spec(tree), meta.spec(old)
    if is_unchanged(new_spec, old_spec):
        return []
    return [immutable("spec", claim_spec_in_go(new_spec))]


def create_template(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new ResourceClaimTemplate. Admin access errors have one `spec` in the path."""
    spec = json_tree.mapping(tree, "spec", "spec")
    errors = _template_metadata(json_tree.mapping(tree, "spec", "metadata"))
    return errors + check_spec(spec, "spec.spec", context) + _admin_access(spec, context)


def update_template(
    tree: JsonView, old: JsonView, _subresource: str, _context: Context
) -> list[FieldError]:
    """Checks a changed ResourceClaimTemplate: the spec is immutable."""
    new, stored = meta.spec(tree), meta.spec(old)
    if is_unchanged(new, stored):
        return []
    # Go embeds the metadata, so its fields are printed beside the spec, with their JSON names.
    value = {
        **meta.metadata(new),
        "Spec": claim_spec_in_go(meta.spec(new)),
    }
    return [immutable("spec", value)]


def request_references(tree: JsonView) -> frozenset[str]:
    """The valid references to requests: `main` and `main/sub`."""
    known: set[str] = set()
    for request in dra.request_trees(tree):
        name = entries.name(request)
        known.add(name)
        for sub in dra.alternatives(request):
            known.add(f"{name}/{entries.name(sub)}")
    return frozenset(known)


def check_spec(spec: JsonView, path: str, context: Context) -> list[FieldError]:
    """Checks a ResourceClaimSpec at `path`."""
    devices = json_tree.mapping(spec, "devices")
    place = f"{path}.devices"
    known = request_references({"spec": spec})
    errors = shared.bounded(
        devices.get("requests"),
        f"{place}.requests",
        REQUESTS_MAX,
        lambda item, at: _request(item, at, context),
        key=lambda item: entries.name(item),
    )
    errors += shared.bounded(
        devices.get("constraints"),
        f"{place}.constraints",
        CONSTRAINTS_MAX,
        lambda item, at: _constraint(item, at, known, context),
    )
    return errors + shared.bounded(
        devices.get("config"),
        f"{place}.config",
        CONFIGS_MAX,
        lambda item, at: shared.all_of(
            shared.request_names(json_tree.get(item, "requests"), f"{at}.requests", known),
            shared.opaque(item, at),
        ),
    )


def _request(item: Any, path: str, context: Context) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.required_name(tree.get("name"), f"{path}.name", names.label)
    exactly, alternatives = tree.get("exactly"), tree.get("firstAvailable")
    if exactly is not None and alternatives:
        errors.append(invalid(path, None, f"{ONE_OF_TEXT}, but multiple fields are set"))
    elif exactly is None and not alternatives:
        errors.append(required(path, ONE_OF_TEXT))
    elif exactly is not None:
        errors += _device_request(exactly, f"{path}.exactly", context)
    else:
        errors += shared.bounded(
            alternatives,
            f"{path}.firstAvailable",
            ALTERNATIVES_MAX,
            lambda sub, at: shared.all_of(
                shared.required_name(json_tree.get(sub, "name"), f"{at}.name", names.label),
                _device_request(sub, at, context),
            ),
            key=lambda sub: entries.name(sub),
        )
    return errors


def _device_request(item: Any, path: str, context: Context) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.required_name(
        tree.get("deviceClassName"), f"{path}.deviceClassName", names.subdomain
    )
    errors += shared.selectors(tree.get("selectors"), f"{path}.selectors", context)
    errors += _amount(tree, path)
    tolerations = tree.get("tolerations")
    for index, toleration in enumerate(tolerations if isinstance(tolerations, list) else []):
        errors += shared.toleration(toleration, f"{path}.tolerations[{index}]")
    return errors


def _amount(tree: JsonView, path: str) -> list[FieldError]:
    count = json_tree.integer(tree, "count") or 0
    match json_tree.text(tree, "allocationMode"):
        case "All":
            if count:
                detail = "must not be specified when allocationMode is 'All'"
                return [invalid(f"{path}.count", count, detail)]
        case "ExactCount":
            if count <= 0:
                return [invalid(f"{path}.count", count, "must be greater than zero")]
        case other:
            return [not_supported(f"{path}.allocationMode", other, MODES)]
    return []


def _constraint(item: Any, path: str, known: frozenset[str], context: Context) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.request_names(tree.get("requests"), f"{path}.requests", known)
    if tree.get("matchAttribute") is not None:
        return errors + shared.fully_qualified_name(
            tree["matchAttribute"], f"{path}.matchAttribute"
        )
    if tree.get("distinctAttribute") is not None:
        return errors + shared.fully_qualified_name(
            tree["distinctAttribute"], f"{path}.distinctAttribute"
        )
    if context.profile.enabled("DRAConsumableCapacity"):
        # Parity: objects.md 5.1; the message states the opposite of the error, as upstream's does.
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set"
        )
        return [*errors, required(path, detail)]
    return [*errors, required(f"{path}.matchAttribute")]


def _admin_access(spec: JsonView, context: Context) -> list[FieldError]:
    if context.namespace_labels.get(well_known.ADMIN_ACCESS) == "true":
        return []
    for index, request in enumerate(json_tree.objects(spec, "devices", "requests")):
        if json_tree.flag(request, "exactly", "adminAccess"):
            path = f"spec.devices.requests[{index}].adminAccess"
            return [forbidden(path, ADMIN_TEXT)]
    return []


def _template_metadata(metadata: JsonView) -> list[FieldError]:
    errors = shared.annotations(metadata.get("annotations"), "spec.metadata.annotations")
    errors += shared.labels(metadata.get("labels"), "spec.metadata.labels")
    return errors + [
        forbidden(f"spec.metadata.{name}", "cannot be set")
        for name in _NOT_IN_TEMPLATES
        if metadata.get(name)
    ]
