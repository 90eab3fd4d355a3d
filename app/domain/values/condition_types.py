"""Types of conditions that more than one line of the code names."""

READY = "Ready"
"""Of pods and nodes."""

POD_SCHEDULED = "PodScheduled"
POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
CONTAINERS_READY = "ContainersReady"
DISRUPTION_TARGET = "DisruptionTarget"
"""Of a pod that is about to be deleted for another's sake (controllers.md 1.5)."""

EVICTION_IN_PROGRESS = "EvictionInProgress"
"""Of a DeviceTaintRule."""

DISRUPTION_ALLOWED = "DisruptionAllowed"
"""Of a PodDisruptionBudget."""

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
"""Both of a CustomResourceDefinition."""

FAILURE_TARGET = "FailureTarget"
SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
"""Both of a Job that is decided and has pods left."""
