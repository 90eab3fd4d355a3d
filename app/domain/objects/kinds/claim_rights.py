"""Access control for the parts of a claim's status.

In addition to the right to write the status, changing `allocation` or `reservedFor` requires the
verb on `resourceclaims/binding` in all namespaces, and changing a driver's entries in `devices`
requires `arbitrary-node:<verb>` on `resourceclaims/driver` of the driver's name, or
`associated-node:<verb>` for a service account on the node that the claim is allocated to. Parity:
objects.md 5.4, gate DRAResourceClaimGranularStatusAuthorization.
"""

from dataclasses import dataclass

from app.domain.objects import field_errors
from app.domain.objects.access import rules
from app.domain.objects.access.rules import AccessRequest, Grants
from app.domain.objects.field_errors import FieldError
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

NODE_NAME = "authentication.kubernetes.io/node-name"
"""The extra field of a user with the node of a service account's pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRights:
    """The rights of a user who writes the status of a claim with `verb`, in `namespace`."""

    user: str
    node: str
    verb: str
    namespace: str
    grants: Grants


def check(old: JsonView, new: JsonView, rights: ClaimRights) -> list[FieldError]:
    """Returns an error for each part of the status that is changed without the required right."""
    before, after = meta.status(old), meta.status(new)
    errors = []
    if any(before.get(name) != after.get(name) for name in ("allocation", "reservedFor")):
        question = AccessRequest(
            verb=rights.verb,
            group=api_groups.RESOURCE,
            resource="resourceclaims",
            subresource="binding",
        )
        if not rights.grants.decide(question).allowed:
            errors.append(
                _error(
                    "status",
                    "status.allocation or status.reservedFor",
                    rights.verb,
                    question,
                    rights,
                )
            )
    for driver in sorted(_changed_drivers(before, after)):
        error = _check_driver(driver, after, rights)
        if error is not None:
            errors.append(error)
    return errors


def _check_driver(driver: str, status: JsonView, rights: ClaimRights) -> FieldError | None:
    verbs = [f"arbitrary-node:{rights.verb}"]
    if _is_on_node(rights, _allocated_node(status)):
        verbs.insert(0, f"associated-node:{rights.verb}")
    questions = [
        AccessRequest(
            verb=verb,
            group=api_groups.RESOURCE,
            resource="resourceclaims",
            subresource="driver",
            namespace=rights.namespace,
            name=driver,
        )
        for verb in verbs
    ]
    if any(rights.grants.decide(question).allowed for question in questions):
        return None
    shown = f"[{' '.join(verbs)}]"
    return _error("status.devices", "status.devices", shown, questions[0], rights)


def _error(
    path: str, changed: str, verb: str, question: AccessRequest, rights: ClaimRights
) -> FieldError:
    reason = rights.grants.decide(question).reason
    refusal = rules.forbidden(question, rights.user, reason)
    return field_errors.forbidden(
        path,
        f'changing {changed} requires resource="{question.full_resource}", verb="{verb}" '
        f"permission: {refusal.message}",
    )


def _changed_drivers(before: JsonView, after: JsonView) -> set[str]:
    old = {_place(device): device for device in json_tree.objects(before, "devices")}
    new = {_place(device): device for device in json_tree.objects(after, "devices")}
    return {place[0] for place in old.keys() | new.keys() if old.get(place) != new.get(place)}


def _place(device: JsonView) -> tuple[str, str, str, str]:
    driver, pool, name, share = (
        json_tree.text(device, key) for key in ("driver", "pool", "device", "shareID")
    )
    return driver, pool, name, share


def _allocated_node(status: JsonView) -> str:
    """The single node of the allocation; empty if it names none or several."""
    terms = json_tree.objects(status, "allocation", "nodeSelector", "nodeSelectorTerms")
    if len(terms) != 1 or json_tree.get(terms[0], "matchExpressions"):
        return ""
    fields = core.field_expressions(terms[0])
    if len(fields) != 1:
        return ""
    values = json_tree.texts(fields[0], "values")
    place = json_tree.text(fields[0], "key"), json_tree.text(fields[0], "operator")
    return values[0] if place == ("metadata.name", "In") and len(values) == 1 else ""


def _is_on_node(rights: ClaimRights, node: str) -> bool:
    is_account = rules.split_service_account(rights.user) is not None
    return bool(node) and is_account and rights.node == node
