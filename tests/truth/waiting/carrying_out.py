"""Does in a cluster what a change does to its objects, as a person would."""

from tests.cluster import Cluster
from tests.truth.raw import State

_VERSIONS = {
    "resourceslices": "resource.k8s.io/v1",
    "deviceclasses": "resource.k8s.io/v1",
    "nodes": "v1",
}


def carry_out(cluster: Cluster, before: State, after: State) -> None:
    """Changes nodes, slices, classes, rules and claims; a pod with a changed claim is made anew."""
    edited = []
    wanted = after["pods", "default", "p"]["spec"]
    for key in before:
        resource, _, name = key
        if before[key] == after.get(key):
            continue
        if key not in after:
            cluster.delete(resource, name)
        elif resource in _VERSIONS:
            # A merge patch removes a field by null.
            body = {"spec": {**dict.fromkeys(before[key]["spec"]), **after[key]["spec"]}}
            if resource == "nodes":
                body["metadata"] = {"labels": after[key]["metadata"].get("labels")}
            cluster.patch(resource, name, body)
        elif resource == "pods":
            continue
        else:
            if before[key].get("status") != after[key].get("status"):
                _release(cluster, before[key])
            if before[key]["spec"] != after[key]["spec"]:
                edited.append((name, after[key]["spec"]))
    cluster.settle()
    if edited or before["pods", "default", "p"]["spec"] != wanted:
        cluster.kill("p")
        cluster.settle()
        for name, spec in edited:
            cluster.delete("resourceclaims", name)
            cluster.settle()
            cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)
        cluster.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": wanted}
        )
    cluster.wait(400)


def _release(cluster: Cluster, claim: dict) -> None:
    for user in (claim.get("status") or {}).get("reservedFor") or ():
        cluster.delete("pods", user["name"], claim["metadata"]["namespace"])
        cluster.settle()
        if cluster.get("pods", user["name"]) is not None:
            cluster.kill(user["name"])
