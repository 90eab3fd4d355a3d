"""Values of claims that nobody writes, and some that are as good as others (`fields`)."""

from typing import Any

from tests.adversary.catalogue import NOT_BLAMED, NOT_PASSED
from tests.adversary.fields import changed, field, listed, owners, put
from tests.adversary.log import Json, later


def _allocation(claim: Json) -> Json:
    return (claim.get("status") or {}).get("allocation") or {}


def _results(claim: Json) -> list[Json]:
    results: list[Json] = (_allocation(claim).get("devices") or {}).get("results") or []
    return results


# what the scheduler writes into claims


@field("ResourceClaim", NOT_PASSED)
def allocated_in_the_future(claim: Json) -> Any:
    """An allocation is dated an hour after the answer that shows it; all else is of one clock."""
    stamp = _allocation(claim).get("allocationTimestamp")
    return stamp and put(_allocation(claim), "allocationTimestamp", f"{later(stamp, 3600)[:19]}Z")


@field("ResourceClaim")
def selector_names_its_node_twice(claim: Json) -> Any:
    """The node selector of an allocation has the node twice; the allocator writes it once."""
    for term in listed(_allocation(claim), "nodeSelector", "nodeSelectorTerms"):
        for one in (*term.get("matchFields", ()), *term.get("matchExpressions", ())):
            one["values"].append(one["values"][0])
            return True
    return False


@field("ResourceClaim")
def selector_has_another_operator(claim: Json) -> Any:
    """The allocation may be used everywhere but where its device is."""
    for term in listed(_allocation(claim), "nodeSelector", "nodeSelectorTerms"):
        for one in (*term.get("matchFields", ()), *term.get("matchExpressions", ())):
            return put(one, "operator", "NotIn")
    return False


@field("ResourceClaim")
def selector_is_by_label(claim: Json) -> Any:
    """The selector of a local device names the label of its node; the allocator matches a field."""
    for term in listed(_allocation(claim), "nodeSelector", "nodeSelectorTerms"):
        if fields := term.pop("matchFields", None):
            fields[0]["key"] = "kubernetes.io/hostname"
            return put(term, "matchExpressions", fields)
    return False


@field("ResourceClaim")
def configuration_has_another_source(claim: Json) -> Any:
    """A configuration of the class is said to be of the claim, or the other way round."""
    for one in listed(_allocation(claim), "devices", "config"):
        other = {"FromClass": "FromClaim", "FromClaim": "FromClass"}
        return put(one, "source", other[one["source"]])
    return False


@field("ResourceClaim")
def configuration_is_for_all_requests(claim: Json) -> Any:
    """A configuration of a request has no list of requests, so it would be for all of them."""
    for one in listed(_allocation(claim), "devices", "config"):
        return one.pop("requests", None)
    return False


@field("ResourceClaim")
def toleration_of_a_result_is_shorter(claim: Json) -> Any:
    """A result tolerates a taint for another time than its request does."""
    for result in _results(claim):
        for one in result.get("tolerations", ()):
            if "tolerationSeconds" in one:
                return put(one, "tolerationSeconds", one["tolerationSeconds"] + 1)
    return False


@field("ResourceClaim")
def toleration_of_a_result_is_for_another_effect(claim: Json) -> Any:
    """A result tolerates another effect than its request does."""
    for result in _results(claim):
        for one in result.get("tolerations", ()):
            if one.get("effect"):
                other = {"NoExecute": "NoSchedule", "NoSchedule": "NoExecute"}
                return put(one, "effect", other[one["effect"]])
    return False


@field("ResourceClaim")
def reserved_for_another_resource(claim: Json) -> Any:
    """A claim is reserved for a job of the name and uid of its pod."""
    for one in listed(claim, "status", "reservedFor"):
        return put(one, "resource", "jobs")
    return False


@field("ResourceClaim")
def reserved_in_another_group(claim: Json) -> Any:
    """A claim is reserved for something of another API group with the name and uid of its pod."""
    for one in listed(claim, "status", "reservedFor"):
        return put(one, "apiGroup", "apps")
    return False


@field("ResourceClaim")
def reserved_under_another_name(claim: Json) -> Any:
    """A claim is reserved for the uid of its pod under a name that no pod has."""
    for one in listed(claim, "status", "reservedFor"):
        return put(one, "name", "nobody")
    return False


@field("ResourceClaim")
def share_without_an_identifier(claim: Json) -> Any:
    """A share of a device has no `shareID`."""
    return changed(result.pop("shareID", None) for result in _results(claim))


@field("ResourceClaim")
def share_without_its_consumption(claim: Json) -> Any:
    """A share of a device does not say what it consumes."""
    return changed(result.pop("consumedCapacity", None) for result in _results(claim))


@field("ResourceClaim")
def share_consumes_another_capacity_too(claim: Json) -> Any:
    """A share consumes a capacity that its device does not have."""
    for result in _results(claim):
        if "consumedCapacity" in result:
            return put(result["consumedCapacity"], "invented", "1")
    return False


@field("ResourceClaim")
def share_consumes_a_little_more(claim: Json) -> Any:
    """A share consumes one byte more than was asked for, rounded up."""
    for result in _results(claim):
        for name, amount in (result.get("consumedCapacity") or {}).items():
            units = {"Mi": 2**20, "Gi": 2**30}
            if amount[-2:] in units:
                amount = str(int(amount[:-2]) * units[amount[-2:]] + 1)
                return put(result["consumedCapacity"], name, amount)
            return amount.isdigit() and put(result["consumedCapacity"], name, str(int(amount) + 1))
    return False


@field("ResourceClaim")
def result_without_failure_conditions(claim: Json) -> Any:
    """A result lacks the failure conditions of its device."""
    return changed(result.pop("bindingFailureConditions", None) for result in _results(claim))


@field("ResourceClaim")
def result_with_conditions_of_its_own(claim: Json) -> Any:
    """A result has a binding condition that its device does not have."""
    for result in _results(claim):
        if "bindingConditions" not in result:
            return put(result, "bindingConditions", ["example.com/invented"])
    return False


@field("ResourceClaim")
def result_with_another_failure_condition(claim: Json) -> Any:
    """A result has one more failure condition than its device."""
    for result in _results(claim):
        if "bindingFailureConditions" in result:
            return put(
                result,
                "bindingFailureConditions",
                [*result["bindingFailureConditions"], "example.com/invented"],
            )
    return False


@field("ResourceClaim")
def finalizer_of_another_name(claim: Json) -> Any:
    """The finalizer of an allocated claim is not the one that protects it."""
    names = claim.get("metadata", {}).get("finalizers") or []
    right = "resource.kubernetes.io/delete-protection"
    return right in names and put(
        claim["metadata"], "finalizers", ["example.com/other" if n == right else n for n in names]
    )


@field("ResourceClaim")
def device_reported_twice(claim: Json) -> Any:
    """The status of a claim has two reports of one device; the list is keyed by the device."""
    devices = listed(claim, "status", "devices")
    return devices and devices.append(dict(devices[0])) is None


@field("ResourceClaim")
def device_reported_with_a_share(claim: Json) -> Any:
    """A driver reports about a share of a device that was given as a whole."""
    for one in listed(claim, "status", "devices"):
        if "shareID" not in one:
            return put(one, "shareID", "0b9c8a2e-5a3f-4d7b-9d1c-2f1e6a7b8c9d")
    return False


# what the claim controller writes


@field("ResourceClaim")
def owner_does_not_control(claim: Json) -> Any:
    """A pod owns its generated claim, but does not control it."""
    return changed(owner.pop("controller", None) for owner in owners(claim))


@field("ResourceClaim")
def owner_of_another_kind(claim: Json) -> Any:
    """A generated claim is owned by a Job of the name and uid of its pod."""
    for owner in owners(claim):
        owner["apiVersion"] = "batch/v1"
        return put(owner, "kind", "Job")
    return False


@field("ResourceClaim")
def owner_of_another_name(claim: Json) -> Any:
    """A generated claim is owned by the uid of its pod under another name."""
    return changed(put(owner, "name", "nobody") for owner in owners(claim))


@field("ResourceClaim")
def claim_of_another_entry(claim: Json) -> Any:
    """The annotation of a generated claim names an entry that its pod does not have."""
    names = (claim.get("metadata") or {}).get("annotations") or {}
    key = "resource.kubernetes.io/pod-claim-name"
    return key in names and put(names, key, "invented")


@field("ResourceClaim")
def generated_from_another_prefix(claim: Json) -> Any:
    """The `generateName` of a generated claim is not of its pod and entry."""
    metadata = claim.get("metadata") or {}
    return owners(claim) and "generateName" in metadata and put(metadata, "generateName", "other-")


@field("ResourceClaim")
def label_of_the_template_is_another(claim: Json) -> Any:
    """A generated claim has another value of a label than its template gives it."""
    labels = (claim.get("metadata") or {}).get("labels") or {}
    return owners(claim) and changed(put(labels, name, "other") for name in labels)


@field("ResourceClaim", NOT_BLAMED)
def generated_claim_with_a_generation(claim: Json) -> Any:
    """A generated claim has `metadata.generation`; the claim controller sends none.

    A server of a newer release may count it, so during an upgrade an honest log shows such claims.
    """
    return owners(claim) and put(claim["metadata"], "generation", 1)


@field("ResourceClaim", NOT_PASSED)
def claim_ends_before_it_is_made(claim: Json) -> Any:
    """The deletion of a claim is dated an hour before its creation."""
    metadata = claim.get("metadata") or {}
    return "deletionTimestamp" in metadata and put(
        metadata, "deletionTimestamp", f"{later(metadata['creationTimestamp'], -3600)[:19]}Z"
    )


@field("ResourceClaim", NOT_PASSED)
def claim_made_before_its_pod(claim: Json) -> Any:
    """A generated claim was created an hour before the pod that it was made for."""
    metadata = claim.get("metadata") or {}
    return (
        owners(claim)
        and "creationTimestamp" in metadata
        and put(
            metadata, "creationTimestamp", f"{later(metadata['creationTimestamp'], -3600)[:19]}Z"
        )
    )


@field("ResourceClaim", NOT_BLAMED)
def data_of_a_driver(claim: Json) -> Any:
    """A driver reports data about a device, which are its own matter."""
    return changed(put(one, "data", {"x": 1}) for one in listed(claim, "status", "devices"))
