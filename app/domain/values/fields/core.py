"""The fields of pods and nodes, and of what other workloads share with them."""

from app.domain.values.fields import paths

node_name = paths.text("spec", "nodeName")
"""The node that a pod is bound to; empty while it waits for one."""

nominated_node_name = paths.text("status", "nominatedNodeName")
scheduler_name = paths.text("spec", "schedulerName")
priority = paths.integer("spec", "priority")
containers = paths.objects("spec", "containers")
init_containers = paths.objects("spec", "initContainers")
tolerations = paths.objects("spec", "tolerations")
resource_claims = paths.objects("spec", "resourceClaims")
resource_claim_statuses = paths.objects("status", "resourceClaimStatuses")
status_reason = paths.text("status", "reason")

taints = paths.objects("spec", "taints")
"""The taints of a node."""

unschedulable = paths.flag("spec", "unschedulable")
allocatable = paths.mapping("status", "allocatable")

replicas = paths.integer("spec", "replicas")
template = paths.mapping("spec", "template")
"""The template from which a workload makes its pods."""
