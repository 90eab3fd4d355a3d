"""The view tables as SQL users see them: names, keys, columns and the meaning of each column.

Belongs here: what a database must know about the views before any event is folded. The folds are
the modules beside this one; commands that only check, list or ask do not load them.
"""

from collections.abc import Mapping
from types import MappingProxyType

from app.domain.log.projection import Column, Table

OBJECTS = Table(
    name="view_objects",
    key=("api_group", "resource", "namespace", "name"),
    columns=(
        Column(name="api_group", type="text", description="API group, empty for core"),
        Column(name="resource", type="text", description="plural of the kind"),
        Column(name="namespace", type="text", description="empty for cluster-scoped objects"),
        Column(name="name", type="text"),
        Column(name="uid", type="text"),
        Column(name="created_revision", type="integer", description="of the event that made it"),
        Column(name="revision", type="integer", description="of its last event"),
        Column(
            name="object",
            type="json",
            description="the object in the storage version; of a Secret without values",
        ),
    ),
    description="Every object that exists",
)
POOLS = Table(
    name="view_pools",
    key=("driver", "pool"),
    columns=(
        Column(name="driver", type="text"),
        Column(name="pool", type="text"),
        Column(name="generation", type="integer", description="the newest published"),
        Column(name="slices_expected", type="integer", description="as the first slice says"),
        Column(name="slices_present", type="integer", description="of the newest generation"),
        Column(name="slices_obsolete", type="integer", description="of older generations"),
        Column(name="state", type="text", description="usable, incomplete or invalid"),
        Column(name="complete", type="boolean"),
        Column(name="valid", type="boolean", description="not known to be invalid"),
        Column(name="problem", type="text", description="why devices of the pool are not used"),
        Column(name="placement", type="text", description="node, all, selector, device or mixed"),
        Column(name="node", type="text", description="when all slices are of one node"),
        Column(name="devices", type="integer", description="in the newest generation"),
        Column(name="counter_sets", type="integer"),
        Column(name="slices", type="json", description="names of the newest generation's slices"),
    ),
    description="Every pool, as the whole cluster sees it",
)
DEVICES = Table(
    name="view_devices",
    key=("driver", "pool", "device"),
    columns=(
        Column(name="driver", type="text"),
        Column(name="pool", type="text"),
        Column(name="device", type="text"),
        Column(name="slice", type="text"),
        Column(name="generation", type="integer", description="of the pool"),
        Column(name="node", type="text", description="empty when more than one may use it"),
        Column(name="attributes", type="json", description="effective values by name"),
        Column(name="capacity", type="json", description="effective quantities by name"),
        Column(name="counters", type="json", description="what it consumes, as published"),
        Column(name="shared", type="boolean", description="several claims may hold a share"),
        Column(name="binding_conditions", type="json"),
        Column(name="taints", type="json", description="effective; each with the rule, if any"),
        Column(name="blocked", type="boolean", description="a taint refuses intolerant requests"),
        Column(name="patches", type="json", description="what ResourceSlicePatches changed"),
        Column(name="patch_problems", type="json", description="patches that failed on it"),
    ),
    description="Every device of the newest generation of its pool",
)
COUNTERS = Table(
    name="view_counters",
    key=("driver", "pool", "counter_set", "counter"),
    columns=(
        Column(name="driver", type="text"),
        Column(name="pool", type="text"),
        Column(name="counter_set", type="text"),
        Column(name="counter", type="text"),
        Column(name="capacity", type="decimal", description="as published"),
        Column(name="used", type="decimal", description="consumed by devices that claims hold"),
        Column(name="free", type="decimal", description="below zero when overdrawn"),
        Column(name="holders", type="json", description="device, amount and claims, by device"),
    ),
    description="Every counter of every pool",
)
TAINTS = Table(
    name="view_taints",
    key=("driver", "pool", "device", "position"),
    columns=(
        Column(name="driver", type="text"),
        Column(name="pool", type="text"),
        Column(name="device", type="text"),
        Column(name="position", type="integer", description="in the merged list, from 0"),
        Column(name="taint_key", type="text"),
        Column(name="taint_value", type="text"),
        Column(name="effect", type="text"),
        Column(name="time_added", type="text"),
        Column(name="rule", type="text", description="empty for a taint of the slice itself"),
        Column(name="claims", type="json", description="claims on the device; who tolerates it"),
    ),
    description="Every taint in force",
)
RULES = Table(
    name="view_taint_rules",
    key=("rule",),
    columns=(
        Column(name="rule", type="text"),
        Column(name="taint_key", type="text"),
        Column(name="taint_value", type="text"),
        Column(name="effect", type="text"),
        Column(name="time_added", type="text"),
        Column(name="selects", type="boolean", description="false when it has no selector"),
        Column(name="driver", type="text", description="empty for any"),
        Column(name="pool", type="text", description="empty for any"),
        Column(name="device", type="text", description="empty for any"),
        Column(name="devices", type="integer", description="published devices that it taints"),
        Column(name="device_names", type="json", description="the first of them"),
        Column(name="allocated", type="integer", description="allocation results it concerns"),
        Column(name="tolerated", type="integer", description="of these, tolerated"),
        Column(name="claims", type="json", description="the first claims concerned"),
        Column(name="pods", type="integer", description="pods for which these are reserved"),
        Column(name="conditions", type="json", description="as in its status"),
    ),
    description="Every DeviceTaintRule",
)
CLAIMS = Table(
    name="view_claims",
    key=("namespace", "name"),
    columns=(
        Column(name="namespace", type="text"),
        Column(name="name", type="text"),
        Column(name="uid", type="text"),
        Column(name="state", type="text", description="pending, allocated or reserved"),
        Column(name="deleting", type="boolean", description="deletion was asked for"),
        Column(name="created", type="instant", description="cluster time of the creation"),
        Column(name="owner", type="text", description="pod for which it was generated"),
        Column(name="requests", type="json", description="what is asked, with devices given"),
        Column(name="devices", type="json", description="driver/pool/device of each share held"),
        Column(name="node", type="text", description="the node to which the allocation is bound"),
        Column(name="allocated", type="instant", description="when it got its devices"),
        Column(name="allocated_revision", type="integer", description="the event that says so"),
        Column(name="reserved_for", type="json", description="resource, name and uid of consumers"),
        Column(name="pods", type="json", description="pods that name it: name, uid, node, phase"),
        Column(
            name="doubt", type="text", description="what the recording lacks of it, such as partial"
        ),
    ),
    description="Every ResourceClaim",
)
CLAIM_DEVICES = Table(
    name="view_claim_devices",
    key=("namespace", "claim", "position"),
    columns=(
        Column(name="namespace", type="text"),
        Column(name="claim", type="text"),
        Column(name="position", type="integer", description="in the allocation, from 0"),
        Column(name="request", type="text", description="name, or main/sub for an alternative"),
        Column(name="driver", type="text"),
        Column(name="pool", type="text"),
        Column(name="device", type="text"),
        Column(name="share_id", type="text", description="empty for a dedicated device"),
        Column(name="admin_access", type="boolean"),
        Column(name="consumed_capacity", type="json", description="capacity name to quantity"),
        Column(name="tolerations", type="json"),
        Column(name="conditions", type="json", description="as reported by the driver"),
    ),
    description="Every device share that a claim holds",
)
DECISIONS = Table(
    name="view_decisions",
    key=("revision",),
    columns=(
        Column(name="revision", type="integer", description="of the decision in the log"),
        Column(name="time", type="instant", description="cluster time"),
        Column(name="controller", type="text"),
        Column(name="resource", type="text", description="plural of the subject's kind"),
        Column(name="namespace", type="text"),
        Column(name="name", type="text"),
        Column(name="outcome", type="text", description="one word, such as Unschedulable"),
        Column(name="observed", type="integer", description="revision that was looked at"),
        Column(name="cause", type="integer", description="revision that provoked it"),
        Column(name="actor", type="text"),
        Column(name="commands", type="integer", description="length of the plan"),
        Column(name="plan", type="text", description="digest of the plan's commands"),
        Column(name="inputs", type="json", description="volatile values that took part"),
        Column(name="summary", type="json", description="bounded reasons"),
        Column(
            name="causes",
            type="json",
            description="why devices were refused: claim, request, cause, nodes, devices, examples",
        ),
    ),
    description="Every recorded decision of a controller",
)
TIMELINE = Table(
    name="view_timeline",
    key=("revision",),
    columns=(
        Column(name="revision", type="integer"),
        Column(name="time", type="instant", description="cluster time"),
        Column(name="kind", type="text", description="one word, such as PodScheduled"),
        Column(name="api_group", type="text", description="empty for core"),
        Column(name="resource", type="text"),
        Column(name="namespace", type="text"),
        Column(name="name", type="text"),
        Column(name="text", type="text", description="what happened, without the subject"),
        Column(name="actor", type="text", description="user name"),
        Column(name="verb", type="text"),
        Column(name="cause", type="integer", description="revision that provoked it, 0 for none"),
        Column(name="because", type="text", description="what that revision was"),
        Column(
            name="doubt", type="text", description="what the recording lacks of it, such as partial"
        ),
    ),
    description="What happened, in order",
)
ACTIVITY = Table(
    name="view_activity",
    key=("minute", "type", "api_group", "resource", "verb", "actor"),
    columns=(
        Column(name="minute", type="instant", description="start of the minute"),
        Column(name="type", type="text", description="event type, such as ObjectCreated"),
        Column(name="api_group", type="text", description="empty for core"),
        Column(name="resource", type="text"),
        Column(name="verb", type="text"),
        Column(name="actor", type="text", description="user name"),
        Column(name="events", type="integer"),
        Column(name="bytes", type="integer", description="sum of the sizes of the bodies"),
    ),
    description="Events per minute of cluster time, by kind, verb and actor",
)
OUTCOMES = Table(
    name="view_outcomes",
    key=("minute", "controller", "outcome"),
    columns=(
        Column(name="minute", type="instant", description="start of the minute"),
        Column(name="controller", type="text"),
        Column(name="outcome", type="text"),
        Column(name="decisions", type="integer"),
    ),
    description="Decisions per minute of cluster time, by controller and outcome",
)

OF_PROJECTIONS: Mapping[str, tuple[Table, ...]] = MappingProxyType(
    {
        "objects": (OBJECTS,),
        "inventory": (
            POOLS,
            DEVICES,
        ),
        "counters": (COUNTERS,),
        "taints": (
            TAINTS,
            RULES,
        ),
        "claims": (
            CLAIMS,
            CLAIM_DEVICES,
        ),
        "decisions": (DECISIONS,),
        "timeline": (TIMELINE,),
        "activity": (
            ACTIVITY,
            OUTCOMES,
        ),
    }
)
"""The tables of each projection by its name, in the order of `all_projections`."""

ALL = tuple(table for tables in OF_PROJECTIONS.values() for table in tables)
"""Every view table."""
