"""Values of pods and of what is published that nobody writes, and some as good as others."""

from collections.abc import Iterator
from typing import Any

from tests.adversary.catalogue import NOT_BLAMED, NOT_PASSED
from tests.adversary.fields import changed, field, listed, owners, put
from tests.adversary.log import Json

# what controllers write into pods


@field("Pod")
def claim_status_of_another_entry(pod: Json) -> Any:
    """The status of a pod names the claim of an entry that the pod does not have."""
    for one in listed(pod, "status", "resourceClaimStatuses"):
        return put(one, "name", "invented")
    return False


@field("Pod")
def claim_status_twice(pod: Json) -> Any:
    """The status of a pod has one more entry, for a claim of nobody."""
    statuses = listed(pod, "status", "resourceClaimStatuses")
    other = {"name": "invented", "resourceClaimName": "nobody"}
    return statuses and statuses.append(other) is None


@field("Pod")
def extended_claim_of_another_container(pod: Json) -> Any:
    """The device of an extended resource is for a container that the pod does not have."""
    for one in listed(pod, "status", "extendedResourceClaimStatus", "requestMappings"):
        return put(one, "containerName", "invented")
    return False


@field("Pod")
def extended_claim_of_another_resource(pod: Json) -> Any:
    """The status of a pod maps a request to an extended resource that no container asks for."""
    for one in listed(pod, "status", "extendedResourceClaimStatus", "requestMappings"):
        return put(one, "resourceName", "example.com/invented")
    return False


@field("Pod")
def extended_claim_of_another_name(pod: Json) -> Any:
    """The status of a pod names a claim of nobody for its extended resources."""
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    return status and put(status, "resourceClaimName", "nobody")


@field("Pod")
def nominated_to_another_node(pod: Json) -> Any:
    """A pod is nominated for a node that does not exist, before it is bound where it fits."""
    status = pod.get("status") or {}
    return status.get("nominatedNodeName") and put(status, "nominatedNodeName", "nowhere")


@field("Pod")
def never_nominated(pod: Json) -> Any:
    """No line nominates a node for a pod whose claims are written before it is bound."""
    return (pod.get("status") or {}).pop("nominatedNodeName", None)


def _evicted(pod: Json) -> Iterator[Json]:
    for one in listed(pod, "status", "conditions"):
        if one.get("type") == "DisruptionTarget":
            yield one


@field("Pod")
def eviction_is_denied(pod: Json) -> Any:
    """The condition of an evicted pod says that it is not to be disrupted."""
    return changed(put(one, "status", "False") for one in _evicted(pod))


@field("Pod")
def eviction_for_another_reason(pod: Json) -> Any:
    """The eviction controller names the reason of another one."""
    return changed(put(one, "reason", "EvictionByEvictionAPI") for one in _evicted(pod))


@field("Pod")
def eviction_without_a_time(pod: Json) -> Any:
    """The condition of an evicted pod has no time."""
    return changed(one.pop("lastTransitionTime", None) for one in _evicted(pod))


# what servers write


@field("Pod")
def priority_of_no_class(pod: Json) -> Any:
    """A pod without a class has a priority of 1000: the server gives it 0."""
    spec = pod.get("spec") or {}
    is_without = "containers" in spec and not spec.get("priorityClassName")
    return is_without and spec.get("priority") == 0 and put(spec, "priority", 1000)


@field("Pod")
def preempts_nobody_without_a_class(pod: Json) -> Any:
    """A pod without a class pre-empts nobody, though no request says so."""
    spec = pod.get("spec") or {}
    is_without = "containers" in spec and not spec.get("priorityClassName")
    return is_without and spec.get("preemptionPolicy") and put(spec, "preemptionPolicy", "Never")


@field("Pod", NOT_PASSED)
def grace_period_below_zero(pod: Json) -> Any:
    """A pod ends with a grace period that is negative."""
    metadata = pod.get("metadata") or {}
    return "deletionTimestamp" in metadata and put(metadata, "deletionGracePeriodSeconds", -7)


@field("Pod", NOT_BLAMED)
def grace_period_unlike_the_end(pod: Json) -> Any:
    """A pod has 400 seconds to end, and its end is the time of its request plus another grace.

    A request that no line has may have asked for the deletion so much earlier.
    """
    metadata = pod.get("metadata") or {}
    return metadata.get("deletionGracePeriodSeconds") and put(
        metadata, "deletionGracePeriodSeconds", 400
    )


@field("ResourceSlice")
def slice_without_a_generation(body: Json) -> Any:
    """A slice has no `metadata.generation`; the server counts it from 1."""
    return (body.get("metadata") or {}).pop("generation", None)


@field("DeviceTaintRule")
def rule_without_a_generation(body: Json) -> Any:
    """A DeviceTaintRule has no `metadata.generation`; the server counts it from 1."""
    return (body.get("metadata") or {}).pop("generation", None)


@field("DeviceTaintRule")
def rule_without_a_time(body: Json) -> Any:
    """The taint of a rule has no `timeAdded`; the server sets it."""
    return ((body.get("spec") or {}).get("taint") or {}).pop("timeAdded", None)


@field("ResourceSlice")
def taint_of_a_slice_without_a_time(body: Json) -> Any:
    """The taint of a device in a slice has no `timeAdded`; the server sets it."""
    taints = [t for one in listed(body, "spec", "devices") for t in one.get("taints") or ()]
    return changed(one.pop("timeAdded", None) for one in taints)


@field("DeviceTaintRule")
def rule_reports_another_condition(body: Json) -> Any:
    """The condition of a rule is of a type that its controller does not write."""
    conditions = listed(body, "status", "conditions")
    return changed(put(one, "type", "Evicting") for one in conditions)


@field("ResourceSlice", is_used=True)
def slice_of_an_absent_owner(body: Json) -> Any:
    """The node that owns a slice is one that was never there: the collector deletes the slice."""
    return changed(put(one, "uid", f"{'0' * 8}{one['uid'][8:]}") for one in owners(body))


@field("ResourceSlice", is_used=True)
def pool_with_one_more_slice(body: Json) -> Any:
    """A slice says that its pool has one more slice than there is: nothing comes from it."""
    pool = (body.get("spec") or {}).get("pool")
    return pool and put(pool, "resourceSliceCount", pool["resourceSliceCount"] + 1)


@field("ResourceSlice", is_used=True)
def slice_for_all_nodes(body: Json) -> Any:
    """The devices of a slice are for all nodes, and allocations select the one that it had."""
    spec = body.get("spec") or {}
    if any(one.get("bindsToNode") for one in spec.get("devices") or ()):
        return False
    return spec.pop("nodeName", None) and put(spec, "allNodes", True)


@field("ResourceSlice", is_used=True)
def device_of_a_slice_for_another_node(body: Json) -> Any:
    """A device of a slice that selects nodes for each device is on a node that does not exist."""
    if not (body.get("spec") or {}).get("perDeviceNodeSelection"):
        return False
    devices = listed(body, "spec", "devices")
    return changed(put(one, "nodeName", "nowhere") for one in devices if "nodeName" in one)


@field("ResourceSlice", is_used=True)
def device_draws_on_no_counter(body: Json) -> Any:
    """All devices of a slice draw on a counter set that the pool does not have."""
    devices = listed(body, "spec", "devices")
    parts = [part for one in devices for part in one.get("consumesCounters") or ()]
    return changed(put(part, "counterSet", "invented") for part in parts)


@field("DeviceClass")
def class_for_another_extended_resource(body: Json) -> Any:
    """The class that serves an extended resource of pods serves another one."""
    spec = body.get("spec") or {}
    return spec.get("extendedResourceName") and put(spec, "extendedResourceName", "example.com/no")


@field("ResourceSlice", NOT_PASSED, is_used=True)
def slice_of_another_driver(body: Json) -> Any:
    """A slice is of another driver than the one whose devices claims got from its pool.

    A later slice of that driver may be in a lost line.
    """
    return put(body["spec"], "driver", "other.example.com") if body.get("spec") else False


@field("ResourceSlice", NOT_PASSED, is_used=True)
def slice_in_another_pool(body: Json) -> Any:
    """A slice is in another pool than the one from which claims got its devices.

    A later slice of that pool may be in a lost line.
    """
    return put(body["spec"]["pool"], "name", "nowhere") if body.get("spec") else False


@field("ResourceSlice", NOT_PASSED, is_used=True)
def devices_with_a_taint_that_nobody_tolerates(body: Json) -> Any:
    """All devices of a slice have a taint since long before the log began.

    A lost line may have taken it away.
    """
    taint = {"key": "planted", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}
    return changed(
        put(one, "taints", [*one.get("taints", ()), taint])
        for one in listed(body, "spec", "devices")
    )


def _scheduled(pod: Json, status: str) -> Iterator[Json]:
    for one in listed(pod, "status", "conditions"):
        if one.get("type") == "PodScheduled" and one.get("status") == status:
            yield one


@field("Pod")
def refused_for_another_reason(pod: Json) -> Any:
    """The scheduler refuses a pod for the reason that it gives for its own errors."""
    return changed(put(one, "reason", "SchedulerError") for one in _scheduled(pod, "False"))


@field("Pod")
def refusal_of_a_later_generation(pod: Json) -> Any:
    """The condition of a refusal is about a generation that the pod never has."""
    return changed(
        put(one, "observedGeneration", 77)
        for one in _scheduled(pod, "False")
        if "observedGeneration" in one
    )


@field("ResourcePoolStatusRequest")
def pool_status_counts_more(body: Json) -> Any:
    """The status of a pool counts more allocated devices than there are."""
    pools = listed(body, "status", "pools")
    return changed(put(one, "allocatedDevices", one["allocatedDevices"] + 1) for one in pools)


# values that somebody chooses


@field("ResourceSlice", NOT_BLAMED)
def attribute_that_nothing_reads(body: Json) -> Any:
    """A device has one more attribute, which no selector names."""
    for one in listed(body, "spec", "devices"):
        if "attributes" in one:
            return put(one["attributes"], "surplus", {"string": "x"})
    return False


@field("Pod", NOT_BLAMED)
def address_of_a_pod(pod: Json) -> Any:
    """A pod has another address: a kubelet reports it."""
    status = pod.get("status") or {}
    if status.get("podIP"):
        status["podIPs"] = [{"ip": "10.9.8.7"}]
    return status.get("podIP") and put(status, "podIP", "10.9.8.7")


@field("Pod", NOT_BLAMED)
def longer_grace_of_a_pod_that_stays(pod: Json) -> Any:
    """A pod that nobody deletes has more time to end."""
    spec = pod.get("spec") or {}
    return "terminationGracePeriodSeconds" in spec and put(
        spec, "terminationGracePeriodSeconds", 31
    )
