"""Reasons of Kubernetes Event objects that the code names more than once."""

SCHEDULED = "Scheduled"
"""The scheduler assigned the pod to a node."""

FAILED_SCHEDULING = "FailedScheduling"
"""An attempt of the scheduler to place the pod failed."""

PREEMPTED = "Preempted"
"""The scheduler deleted the pod in favour of a pod of higher priority."""

REBOOTED = "Rebooted"
"""The node has another boot id than before."""

FAILED_CLAIM_CREATION = "FailedResourceClaimCreation"
"""The claim controller could not create a claim of the pod."""
