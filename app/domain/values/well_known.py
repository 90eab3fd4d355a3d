"""Well-known labels, annotations, taints and finalizers that more than one module names."""

ARCH = "kubernetes.io/arch"
HOSTNAME = "kubernetes.io/hostname"
OS = "kubernetes.io/os"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
PID_PRESSURE = "node.kubernetes.io/pid-pressure"
NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of namespaces in which claims may request admin access."""

CLAIM_PROTECTION = "resource.kubernetes.io/delete-protection"
"""Finalizer that prevents the removal of an allocated claim (controllers.md 11.4)."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: the entry of the pod that it was created for."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark that completes a streamed list."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which `kubectl apply` keeps the configuration that it sent."""

DEPLOYMENT_REVISION = "deployment.kubernetes.io/revision"
"""Annotation of a Deployment and of each of its ReplicaSets: the number of the template."""

CONTROLLER_REVISION = "controller-revision-hash"
"""Label of the pods of StatefulSets and DaemonSets: the template that they were made from."""

MIRROR_POD = "kubernetes.io/config.mirror"
"""Annotation of a pod that a kubelet created from a local file."""

LOST_DRIVERS = "redra.dev/lost-drivers"
"""Annotation of a node whose emulated kubelet has lost these drivers."""

TLS_TYPE = "kubernetes.io/tls"
"""Type of Secrets that hold a certificate and its key."""
