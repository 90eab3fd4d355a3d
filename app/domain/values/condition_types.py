"""Types of conditions that the code names more than once."""

READY = "Ready"
"""A condition of pods and nodes."""

POD_SCHEDULED = "PodScheduled"
POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
CONTAINERS_READY = "ContainersReady"
DISRUPTION_TARGET = "DisruptionTarget"
"""A condition of a pod that is about to be deleted by a disruption (controllers.md 1.5)."""

EVICTION_IN_PROGRESS = "EvictionInProgress"
"""A condition of a DeviceTaintRule."""

DISRUPTION_ALLOWED = "DisruptionAllowed"
"""A condition of a PodDisruptionBudget."""

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
"""Both are conditions of a CustomResourceDefinition."""

FAILURE_TARGET = "FailureTarget"
SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
"""Both are conditions of a Job whose outcome is decided while some of its pods remain."""

REPLICA_FAILURE = "ReplicaFailure"
"""A condition of a ReplicaSet whose pods cannot be made, which its Deployment takes over."""
