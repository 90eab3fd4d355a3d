"""The tables of materialised views, as the projections declare them.

What an older running version notices: nothing, it does not know them.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = (
    """
CREATE TABLE view_activity (
    history bigint NOT NULL,
    minute timestamptz NOT NULL,
    type text COLLATE "C" NOT NULL,
    api_group text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    events bigint,
    bytes bigint,
    CONSTRAINT view_activity_pkey
        PRIMARY KEY (history, minute, type, api_group, resource, verb, actor)
)
    """,
    """
CREATE TABLE view_claim_devices (
    history bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    claim text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    request text COLLATE "C",
    driver text COLLATE "C",
    pool text COLLATE "C",
    device text COLLATE "C",
    share_id text COLLATE "C",
    admin_access boolean,
    consumed_capacity json,
    tolerations json,
    conditions json,
    CONSTRAINT view_claim_devices_pkey PRIMARY KEY (history, namespace, claim, position)
)
    """,
    """
CREATE TABLE view_claims (
    history bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    uid text COLLATE "C",
    state text COLLATE "C",
    deleting boolean,
    created timestamptz,
    owner text COLLATE "C",
    requests json,
    devices json,
    node text COLLATE "C",
    allocated timestamptz,
    allocated_revision bigint,
    reserved_for json,
    pods json,
    CONSTRAINT view_claims_pkey PRIMARY KEY (history, namespace, name)
)
    """,
    """
CREATE TABLE view_counters (
    history bigint NOT NULL,
    driver text COLLATE "C" NOT NULL,
    pool text COLLATE "C" NOT NULL,
    counter_set text COLLATE "C" NOT NULL,
    counter text COLLATE "C" NOT NULL,
    capacity numeric,
    used numeric,
    free numeric,
    holders json,
    CONSTRAINT view_counters_pkey PRIMARY KEY (history, driver, pool, counter_set, counter)
)
    """,
    """
CREATE TABLE view_decisions (
    history bigint NOT NULL,
    revision bigint NOT NULL,
    time timestamptz,
    controller text COLLATE "C",
    resource text COLLATE "C",
    namespace text COLLATE "C",
    name text COLLATE "C",
    outcome text COLLATE "C",
    observed bigint,
    cause bigint,
    actor text COLLATE "C",
    commands bigint,
    plan text COLLATE "C",
    inputs json,
    summary json,
    CONSTRAINT view_decisions_pkey PRIMARY KEY (history, revision)
)
    """,
    """
CREATE TABLE view_devices (
    history bigint NOT NULL,
    driver text COLLATE "C" NOT NULL,
    pool text COLLATE "C" NOT NULL,
    device text COLLATE "C" NOT NULL,
    slice text COLLATE "C",
    generation bigint,
    node text COLLATE "C",
    attributes json,
    capacity json,
    counters json,
    shared boolean,
    binding_conditions json,
    taints json,
    blocked boolean,
    patches json,
    patch_problems json,
    CONSTRAINT view_devices_pkey PRIMARY KEY (history, driver, pool, device)
)
    """,
    """
CREATE TABLE view_objects (
    history bigint NOT NULL,
    api_group text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    uid text COLLATE "C",
    created_revision bigint,
    revision bigint,
    object json,
    CONSTRAINT view_objects_pkey PRIMARY KEY (history, api_group, resource, namespace, name)
)
    """,
    """
CREATE TABLE view_outcomes (
    history bigint NOT NULL,
    minute timestamptz NOT NULL,
    controller text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    decisions bigint,
    CONSTRAINT view_outcomes_pkey PRIMARY KEY (history, minute, controller, outcome)
)
    """,
    """
CREATE TABLE view_pools (
    history bigint NOT NULL,
    driver text COLLATE "C" NOT NULL,
    pool text COLLATE "C" NOT NULL,
    generation bigint,
    slices_expected bigint,
    slices_present bigint,
    slices_obsolete bigint,
    state text COLLATE "C",
    complete boolean,
    valid boolean,
    problem text COLLATE "C",
    placement text COLLATE "C",
    node text COLLATE "C",
    devices bigint,
    counter_sets bigint,
    slices json,
    CONSTRAINT view_pools_pkey PRIMARY KEY (history, driver, pool)
)
    """,
    """
CREATE TABLE view_taint_rules (
    history bigint NOT NULL,
    rule text COLLATE "C" NOT NULL,
    taint_key text COLLATE "C",
    taint_value text COLLATE "C",
    effect text COLLATE "C",
    time_added text COLLATE "C",
    selects boolean,
    driver text COLLATE "C",
    pool text COLLATE "C",
    device text COLLATE "C",
    devices bigint,
    device_names json,
    allocated bigint,
    tolerated bigint,
    claims json,
    pods bigint,
    conditions json,
    CONSTRAINT view_taint_rules_pkey PRIMARY KEY (history, rule)
)
    """,
    """
CREATE TABLE view_taints (
    history bigint NOT NULL,
    driver text COLLATE "C" NOT NULL,
    pool text COLLATE "C" NOT NULL,
    device text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    taint_key text COLLATE "C",
    taint_value text COLLATE "C",
    effect text COLLATE "C",
    time_added text COLLATE "C",
    rule text COLLATE "C",
    claims json,
    CONSTRAINT view_taints_pkey PRIMARY KEY (history, driver, pool, device, position)
)
    """,
    """
CREATE TABLE view_timeline (
    history bigint NOT NULL,
    revision bigint NOT NULL,
    time timestamptz,
    kind text COLLATE "C",
    api_group text COLLATE "C",
    resource text COLLATE "C",
    namespace text COLLATE "C",
    name text COLLATE "C",
    text text COLLATE "C",
    actor text COLLATE "C",
    verb text COLLATE "C",
    cause bigint,
    because text COLLATE "C",
    CONSTRAINT view_timeline_pkey PRIMARY KEY (history, revision)
)
    """,
)

# Table and, after a dot, column.
COMMENTS = {
    "view_activity": "Events per minute of cluster time, by kind, verb and actor",
    "view_activity.minute": "start of the minute",
    "view_activity.type": "event type, such as ObjectCreated",
    "view_activity.api_group": "empty for core",
    "view_activity.actor": "user name",
    "view_activity.bytes": "sum of the sizes of the bodies",
    "view_claim_devices": "Every device share that a claim holds",
    "view_claim_devices.position": "in the allocation, from 0",
    "view_claim_devices.request": "name, or main/sub for an alternative",
    "view_claim_devices.share_id": "empty for a dedicated device",
    "view_claim_devices.consumed_capacity": "capacity name to quantity",
    "view_claim_devices.conditions": "as reported by the driver",
    "view_claims": "Every ResourceClaim",
    "view_claims.state": "pending, allocated or reserved",
    "view_claims.deleting": "deletion was asked for",
    "view_claims.created": "cluster time of the creation",
    "view_claims.owner": "pod for which it was generated",
    "view_claims.requests": "what is asked, with devices given",
    "view_claims.devices": "driver/pool/device of each share held",
    "view_claims.node": "the node to which the allocation is bound",
    "view_claims.allocated": "when it got its devices",
    "view_claims.allocated_revision": "the event that says so",
    "view_claims.reserved_for": "resource, name and uid of consumers",
    "view_claims.pods": "pods that name it: name, uid, node, phase",
    "view_counters": "Every counter of every pool",
    "view_counters.capacity": "as published",
    "view_counters.used": "consumed by devices that claims hold",
    "view_counters.free": "below zero when overdrawn",
    "view_counters.holders": "device, amount and claims, by device",
    "view_decisions": "Every recorded decision of a controller",
    "view_decisions.revision": "of the decision in the log",
    "view_decisions.time": "cluster time",
    "view_decisions.resource": "plural of the subject's kind",
    "view_decisions.outcome": "one word, such as Unschedulable",
    "view_decisions.observed": "revision that was looked at",
    "view_decisions.cause": "revision that provoked it",
    "view_decisions.commands": "length of the plan",
    "view_decisions.plan": "digest of the plan's commands",
    "view_decisions.inputs": "volatile values that took part",
    "view_decisions.summary": "bounded reasons",
    "view_devices": "Every device of the newest generation of its pool",
    "view_devices.generation": "of the pool",
    "view_devices.node": "empty when more than one may use it",
    "view_devices.attributes": "effective values by name",
    "view_devices.capacity": "effective quantities by name",
    "view_devices.counters": "what it consumes, as published",
    "view_devices.shared": "several claims may hold a share",
    "view_devices.taints": "effective; each with the rule, if any",
    "view_devices.blocked": "a taint refuses intolerant requests",
    "view_devices.patches": "what ResourceSlicePatches changed",
    "view_devices.patch_problems": "patches that failed on it",
    "view_objects": "Every object that exists",
    "view_objects.api_group": "API group, empty for core",
    "view_objects.resource": "plural of the kind",
    "view_objects.namespace": "empty for cluster-scoped objects",
    "view_objects.created_revision": "of the event that made it",
    "view_objects.revision": "of its last event",
    "view_objects.object": "the object in the storage version",
    "view_outcomes": "Decisions per minute of cluster time, by controller and outcome",
    "view_outcomes.minute": "start of the minute",
    "view_pools": "Every pool, as the whole cluster sees it",
    "view_pools.generation": "the newest published",
    "view_pools.slices_expected": "as the first slice says",
    "view_pools.slices_present": "of the newest generation",
    "view_pools.slices_obsolete": "of older generations",
    "view_pools.state": "usable, incomplete or invalid",
    "view_pools.valid": "not known to be invalid",
    "view_pools.problem": "why devices of the pool are not used",
    "view_pools.placement": "node, all, selector, device or mixed",
    "view_pools.node": "when all slices are of one node",
    "view_pools.devices": "in the newest generation",
    "view_pools.slices": "names of the newest generation's slices",
    "view_taint_rules": "Every DeviceTaintRule",
    "view_taint_rules.selects": "false when it has no selector",
    "view_taint_rules.driver": "empty for any",
    "view_taint_rules.pool": "empty for any",
    "view_taint_rules.device": "empty for any",
    "view_taint_rules.devices": "published devices that it taints",
    "view_taint_rules.device_names": "the first of them",
    "view_taint_rules.allocated": "allocation results it concerns",
    "view_taint_rules.tolerated": "of these, tolerated",
    "view_taint_rules.claims": "the first claims concerned",
    "view_taint_rules.pods": "pods for which these are reserved",
    "view_taint_rules.conditions": "as in its status",
    "view_taints": "Every taint in force",
    "view_taints.position": "in the merged list, from 0",
    "view_taints.rule": "empty for a taint of the slice itself",
    "view_taints.claims": "claims on the device; who tolerates it",
    "view_timeline": "What happened, in order",
    "view_timeline.time": "cluster time",
    "view_timeline.kind": "one word, such as PodScheduled",
    "view_timeline.api_group": "empty for core",
    "view_timeline.text": "what happened, without the subject",
    "view_timeline.actor": "user name",
    "view_timeline.cause": "revision that provoked it, 0 for none",
    "view_timeline.because": "what that revision was",
}


def upgrade() -> None:
    """Create the tables, with comments in the database on their meaning."""
    for statement in TABLES:
        op.execute(statement)
    for place, sentence in COMMENTS.items():
        kind = "COLUMN" if "." in place else "TABLE"
        quoted = sentence.replace("'", "''")
        op.execute(f"COMMENT ON {kind} {place} IS '{quoted}'")


def downgrade() -> None:
    """Drop the tables and the checkpoints; the log fills the tables again."""
    op.execute("DELETE FROM checkpoints")
    op.execute(
        "DROP TABLE "
        "view_activity, "
        "view_claim_devices, "
        "view_claims, "
        "view_counters, "
        "view_decisions, "
        "view_devices, "
        "view_objects, "
        "view_outcomes, "
        "view_pools, "
        "view_taint_rules, "
        "view_taints, "
        "view_timeline"
    )
