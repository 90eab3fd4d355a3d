"""Reasons of Kubernetes Event objects that the code names more than once."""

from collections.abc import Mapping
from types import MappingProxyType

SCHEDULED = "Scheduled"
"""The scheduler assigned the pod to a node."""

FAILED_SCHEDULING = "FailedScheduling"
"""An attempt of the scheduler to place the pod failed."""

PREEMPTED = "Preempted"
"""The scheduler deleted the pod in favour of a pod of higher priority."""

BINDING_PENDING = "BindingConditionsPending"
"""The pod waits for the binding conditions of its devices."""

ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        SCHEDULED: "Binding",
        FAILED_SCHEDULING: "Scheduling",
        PREEMPTED: "Preempting",
        BINDING_PENDING: "Scheduling",
    }
)
"""The action of each Event of the scheduler; those of other controllers have none.

Parity: controllers.md 11.1.
"""

REBOOTED = "Rebooted"
"""The node has another boot id than before."""

FAILED_CLAIM_CREATION = "FailedResourceClaimCreation"
"""The claim controller could not create a claim of the pod."""
