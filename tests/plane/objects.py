"""What several components read of pods and claims."""

FINALIZER = "resource.kubernetes.io/delete-protection"
SA = "system:serviceaccount:kube-system:"
CLAIMS, COLLECTOR, EVICTION = (
    SA + "resource-claim-controller",
    SA + "generic-garbage-collector",
    SA + "device-taint-eviction-controller",
)
KCM = "kube-controller-manager/v1.36.2 (linux/amd64) kubernetes/8e16b12/"


def key_of(tree):
    return tree["metadata"].get("namespace", ""), tree["metadata"]["name"]


def uid_of(tree):
    return tree["metadata"]["uid"]


def owner_pod(claim):
    for ref in claim["metadata"].get("ownerReferences", []):
        if ref.get("controller") and ref["kind"] == "Pod":
            return ref
    return None


def done(pod):
    return pod["status"]["phase"] in ("Succeeded", "Failed") or (
        "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName")
    )


def claim_name(pod, entry):
    """The name of a claim of an entry: (known, name or None)."""
    if entry.get("resourceClaimName"):
        return True, entry["resourceClaimName"]
    for each in pod["status"].get("resourceClaimStatuses", []):
        if each["name"] == entry["name"]:
            return True, each.get("resourceClaimName")
    return False, None
