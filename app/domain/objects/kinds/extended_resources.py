"""Names of extended resources that devices can provide, and the annotation of claims for them."""

IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""The prefix of a class's name in the extended resource that every class has.

Parity: controllers.md 3.10, KEP-5004.
"""

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that the scheduler made for a pod's extended resources: `true`."""


def is_extended(name: str) -> bool:
    """Whether a resource has a domain other than Kubernetes' own, or is implicit."""
    domain, slash, _ = name.partition("/")
    if not slash:
        return False
    is_native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return name.startswith(IMPLICIT) or not is_native
