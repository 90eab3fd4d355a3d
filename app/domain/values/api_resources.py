"""API resources that the code names, as pairs of group and plural name."""

from app.domain.values import api_groups

ADMISSION_POLICIES = (api_groups.ADMISSION_REGISTRATION, "validatingadmissionpolicies")
ADMISSION_POLICY_BINDINGS = (
    api_groups.ADMISSION_REGISTRATION,
    "validatingadmissionpolicybindings",
)
CRON_JOBS = (api_groups.BATCH, "cronjobs")
CLUSTER_ROLE_BINDINGS = (api_groups.RBAC, "clusterrolebindings")
CLUSTER_ROLES = (api_groups.RBAC, "clusterroles")
CONTROLLER_REVISIONS = (api_groups.APPS, "controllerrevisions")
DAEMON_SETS = (api_groups.APPS, "daemonsets")
CUSTOM_RESOURCE_DEFINITIONS = (api_groups.API_EXTENSIONS, "customresourcedefinitions")
DEPLOYMENTS = (api_groups.APPS, "deployments")
DEVICE_CLASSES = (api_groups.RESOURCE, "deviceclasses")
DEVICE_TAINT_RULES = (api_groups.RESOURCE, "devicetaintrules")
EVENTS = (api_groups.CORE, "events")
JOBS = (api_groups.BATCH, "jobs")
LEASES = (api_groups.COORDINATION, "leases")
LIMIT_RANGES = (api_groups.CORE, "limitranges")
MUTATING_WEBHOOK_CONFIGURATIONS = (
    api_groups.ADMISSION_REGISTRATION,
    "mutatingwebhookconfigurations",
)
NAMESPACES = (api_groups.CORE, "namespaces")
NODES = (api_groups.CORE, "nodes")
PERSISTENT_VOLUMES = (api_groups.CORE, "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS = (api_groups.CORE, "persistentvolumeclaims")
PODS = (api_groups.CORE, "pods")
POD_DISRUPTION_BUDGETS = (api_groups.POLICY, "poddisruptionbudgets")
REPLICA_SETS = (api_groups.APPS, "replicasets")
RESOURCE_CLAIMS = (api_groups.RESOURCE, "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = (api_groups.RESOURCE, "resourceclaimtemplates")
RESOURCE_POOL_STATUS_REQUESTS = (api_groups.RESOURCE, "resourcepoolstatusrequests")
RESOURCE_QUOTAS = (api_groups.CORE, "resourcequotas")
RESOURCE_SLICES = (api_groups.RESOURCE, "resourceslices")
RESOURCE_SLICE_PATCHES = (api_groups.RESOURCE, "resourceslicepatches")
RUNTIME_CLASSES = (api_groups.NODE, "runtimeclasses")
SECRETS = (api_groups.CORE, "secrets")
SERVICE_ACCOUNTS = (api_groups.CORE, "serviceaccounts")
STORAGE_CLASSES = (api_groups.STORAGE, "storageclasses")
STATEFUL_SETS = (api_groups.APPS, "statefulsets")
SERVICES = (api_groups.CORE, "services")
VALIDATING_WEBHOOK_CONFIGURATIONS = (
    api_groups.ADMISSION_REGISTRATION,
    "validatingwebhookconfigurations",
)
