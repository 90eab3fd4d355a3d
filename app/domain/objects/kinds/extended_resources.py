"""Names of extended resources that devices may serve, and the mark of claims made for them."""

IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class: the extended resource that every class has.

Parity: controllers.md 3.10, KEP-5004.
"""

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""On a claim that the scheduler made for a pod's extended resources; its value is `true`."""


def is_extended(name: str) -> bool:
    """True for resources with a domain that are not of Kubernetes itself, and for implicit ones."""
    domain, slash, _ = name.partition("/")
    if not slash:
        return False
    is_native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return name.startswith(IMPLICIT) or not is_native
