"""Validation of `resourceClaims` of pods. Parity: objects.md 15.1; the messages are upstream's."""

from app.domain.objects.field_errors import FieldError, duplicate, invalid
from app.domain.objects.validation import shared
from app.domain.values import json_tree, names
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonView

SOURCE_TEXT = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"


def check(spec: JsonView, path: str) -> list[FieldError]:
    """Checks the `resourceClaims` of a spec."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(json_tree.objects(spec, "resourceClaims")):
        at = f"{path}.resourceClaims[{index}]"
        name = entries.name(claim)
        errors += shared.required_name(name, f"{at}.name", names.label)
        if name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if direct is not None and template is not None:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            errors.append(invalid(at, _in_go(claim), detail))
        elif direct is None and template is None:
            errors.append(invalid(at, _in_go(claim), SOURCE_TEXT))
        for field, value in (
            ("resourceClaimName", direct),
            ("resourceClaimTemplateName", template),
        ):
            if value is not None:
                errors += shared.formatted(value, f"{at}.{field}", names.subdomain)
    return errors


def _in_go(claim: JsonView) -> dict[str, object]:
    """An entry with Go field names, as messages print it."""
    return {
        "Name": claim.get("name") or "",
        "ResourceClaimName": claim.get("resourceClaimName"),
        "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName"),
    }
