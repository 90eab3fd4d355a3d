"""Whose claim is it: owners, reservations, names and configs of ResourceClaims.

Parity: allocator.md 20. Functions that may refuse raise ClaimProblem with upstream's text.
`accept_group` stands for the alpha gates under which a PodGroup may own and reserve claims.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

SCHEDULING_GROUP = "scheduling.k8s.io"


class ClaimProblem(Exception):
    """A claim that cannot be used as asked; the message is upstream's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimName:
    """The claim behind an entry of a pod; `name` is None when none was needed.

    `check_owner` is true when the claim was generated and must belong to the pod.
    """

    name: str | None
    check_owner: bool


def check_for_pod(pod: JsonView, claim: JsonView, *, accept_group: bool = False) -> None:
    """Raises ClaimProblem unless the claim was created for the pod (or its group)."""
    if json_tree.text(pod, "metadata", "namespace") != _namespace(claim):
        raise ClaimProblem(
            f"ResourceClaim {_key(claim)} is not in the same namespace as Pod {_key(pod)}"
        )
    if is_controlled_by(claim, pod):
        return
    group = group_name(pod)
    problem = f"ResourceClaim {_key(claim)} was not created for Pod {_key(pod)}"
    if not accept_group or not group:
        raise ClaimProblem(f"{problem} (Pod is not owner)")
    owner = controller_of(claim)
    if (
        json_tree.text(owner, "kind") != "PodGroup"
        or json_tree.text(owner, "name") != group
        or not json_tree.text(owner, "apiVersion").startswith(f"{SCHEDULING_GROUP}/")
    ):
        raise ClaimProblem(f"{problem} (neither Pod nor PodGroup {group} is the owner)")


def check_for_group(group: JsonView, claim: JsonView) -> None:
    """Raises ClaimProblem unless the claim was created for the PodGroup."""
    if _namespace(group) != _namespace(claim):
        raise ClaimProblem(
            f"ResourceClaim {_key(claim)} is not in the same namespace as PodGroup {_key(group)}"
        )
    if not is_controlled_by(claim, group):
        raise ClaimProblem(
            f"ResourceClaim {_key(claim)} was not created for PodGroup {_key(group)} "
            "(PodGroup is not owner)"
        )


def is_reserved_for(pod: JsonView, claim: JsonView, *, accept_group: bool = False) -> bool:
    """Whether the claim is reserved for the pod (or its group)."""
    uid = json_tree.text(pod, "metadata", "uid")
    group = group_name(pod)
    for consumer in json_tree.objects(claim, "status", "reservedFor"):
        if json_tree.text(consumer, "uid") == uid:
            return True
        if (
            accept_group
            and group
            and json_tree.text(consumer, "apiGroup") == SCHEDULING_GROUP
            and json_tree.text(consumer, "resource") == "podgroups"
            and json_tree.text(consumer, "name") == group
        ):
            return True
    return False


def claim_name(pod: JsonView, entry: JsonView) -> ClaimName:
    """The name of the claim for one entry of the pod. Raises ClaimProblem."""
    direct = json_tree.get(entry, "resourceClaimName")
    if isinstance(direct, str):
        return ClaimName(name=direct, check_owner=False)
    name = json_tree.text(entry, "name")
    if json_tree.get(entry, "resourceClaimTemplateName") is None:
        raise ClaimProblem(
            f'pod "{_key(pod)}", spec.resourceClaim "{name}": none of the supported fields are set'
        )
    for status in json_tree.objects(pod, "status", "resourceClaimStatuses"):
        if json_tree.text(status, "name") == name:
            found = json_tree.get(status, "resourceClaimName")
            return ClaimName(name=found if isinstance(found, str) else None, check_owner=True)
    raise ClaimProblem(f'pod "{_key(pod)}": ResourceClaim not created yet')


def consumer_of(pod: JsonView, entry: JsonView, group: JsonView | None = None) -> JsonObject:
    """The reference to reserve a claim for: the pod, or its group when that shares the claim.

    Raises ClaimProblem.
    """
    entry_name = json_tree.text(entry, "name")
    if not _names_a_claim(entry):
        raise ClaimProblem(
            f"Pod {_key(pod)} claim {entry_name}: none of the supported fields are set"
        )
    myself = {
        "resource": "pods",
        "name": json_tree.text(pod, "metadata", "name"),
        "uid": json_tree.text(pod, "metadata", "uid"),
    }
    if group is None:
        return myself
    member_of = group_name(pod)
    if not member_of:
        raise ClaimProblem(f"Pod {_key(pod)} does not belong to a PodGroup")
    if _namespace(pod) != _namespace(group) or member_of != _name(group):
        raise ClaimProblem(
            f"Pod {_key(pod)} belongs to PodGroup {_namespace(pod)}/{member_of}, "
            f"not PodGroup {_key(group)}"
        )
    for candidate in json_tree.objects(group, "spec", "resourceClaims"):
        if not _names_a_claim(candidate):
            raise ClaimProblem(
                f"PodGroup {_key(group)} claim {json_tree.text(candidate, 'name')}: "
                "none of the supported fields are set"
            )
        if all(
            candidate.get(field) == entry.get(field)
            for field in ("name", "resourceClaimName", "resourceClaimTemplateName")
        ):
            return {
                "apiGroup": SCHEDULING_GROUP,
                "resource": "podgroups",
                "name": _name(group),
                "uid": json_tree.text(group, "metadata", "uid"),
            }
    return myself


def main_request(reference: str) -> str:
    """The request a reference names: the part before the first slash."""
    return reference.partition("/")[0]


def configs_for_result(configs: Iterable[JsonObject], result: JsonView) -> list[JsonObject]:
    """The opaque configs that apply to one device result, in order."""
    request = json_tree.text(result, "request")
    found = []
    for config in configs:
        requests = json_tree.texts(config, "requests")
        applies = not requests or request in requests or main_request(request) in requests
        if applies and config.get("opaque") is not None:
            found.append(config)
    return found


def controller_of(tree: JsonView) -> JsonView:
    """The first owner reference that is a controller; empty when there is none."""
    for owner in json_tree.objects(tree, "metadata", "ownerReferences"):
        if json_tree.flag(owner, "controller"):
            return owner
    return json_tree.EMPTY


def is_controlled_by(tree: JsonView, owner: JsonView) -> bool:
    """Whether the controller of the object is `owner`, by uid."""
    found = controller_of(tree)
    return bool(found) and json_tree.text(found, "uid") == json_tree.text(owner, "metadata", "uid")


def group_name(pod: JsonView) -> str:
    """The PodGroup that the pod names; empty when it names none."""
    return json_tree.text(pod, "spec", "schedulingGroup", "podGroupName")


def _names_a_claim(entry: JsonView) -> bool:
    return (
        json_tree.get(entry, "resourceClaimName") is not None
        or json_tree.get(entry, "resourceClaimTemplateName") is not None
    )


def _name(tree: JsonView) -> str:
    return json_tree.text(tree, "metadata", "name")


def _namespace(tree: JsonView) -> str:
    return json_tree.text(tree, "metadata", "namespace")


def _key(tree: JsonView) -> str:
    return f"{_namespace(tree)}/{_name(tree)}"
