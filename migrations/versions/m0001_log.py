"""The log, its heads, leases, checkpoints and snapshots.

What an older running version notices: nothing, this is the first.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PARTITIONS = 8

TABLES = (
    """
CREATE TABLE histories (
    history bigint GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" NOT NULL,
    seed numeric(40, 0) NOT NULL,
    settings json NOT NULL,
    created timestamptz NOT NULL,
    parent bigint CONSTRAINT histories_parent_fkey REFERENCES histories (history),
    parent_revision bigint NOT NULL,
    CONSTRAINT histories_pkey PRIMARY KEY (history),
    CONSTRAINT histories_name_key UNIQUE (name)
)
    """,
    """
CREATE TABLE log_heads (
    history bigint CONSTRAINT log_heads_history_fkey REFERENCES histories (history),
    revision bigint NOT NULL,
    epoch bigint NOT NULL,
    hash bytea NOT NULL,
    time timestamptz NOT NULL,
    CONSTRAINT log_heads_pkey PRIMARY KEY (history)
) WITH (fillfactor = 50)
    """,
    """
CREATE TABLE log_events (
    history bigint NOT NULL,
    revision bigint NOT NULL,
    time timestamptz NOT NULL,
    clock timestamptz NOT NULL,
    type text COLLATE "C" NOT NULL,
    "group" text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    uid text COLLATE "C" NOT NULL,
    stamp json NOT NULL,
    object json NOT NULL,
    format smallint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT log_events_pkey PRIMARY KEY (history, revision)
) PARTITION BY HASH (history)
    """,
    """
CREATE INDEX log_events_object
    ON log_events (history, "group", resource, namespace, name, revision DESC)
    """,
    """
CREATE TABLE leases (
    history bigint CONSTRAINT leases_history_fkey REFERENCES histories (history),
    name text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    holder text NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT leases_pkey PRIMARY KEY (history, name)
) WITH (fillfactor = 50)
    """,
    """
CREATE TABLE checkpoints (
    history bigint CONSTRAINT checkpoints_history_fkey REFERENCES histories (history),
    projection text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    revision bigint NOT NULL,
    state_hash text NOT NULL,
    CONSTRAINT checkpoints_pkey PRIMARY KEY (history, projection, version)
)
    """,
    """
CREATE TABLE snapshots (
    history bigint CONSTRAINT snapshots_history_fkey REFERENCES histories (history),
    projection text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    revision bigint NOT NULL,
    state bytea NOT NULL,
    CONSTRAINT snapshots_pkey PRIMARY KEY (history, projection, version, revision)
)
    """,
)

# The guard has two halves: a privilege that the owner revokes from itself, and triggers, which also
# stop a superuser and fire in every replication role. TRUNCATE and statements on a partition do not
# fire triggers of the parent, so each table has its own triggers.
GUARD_FUNCTION = """
CREATE FUNCTION log_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;
"""

READABLE = """
CREATE VIEW log AS
SELECT histories.name AS history,
       log_events.revision,
       log_events.time,
       log_events.type,
       log_events."group",
       log_events.resource,
       log_events.namespace,
       log_events.name,
       log_events.uid,
       log_events.stamp -> 'actor' ->> 'user' AS actor,
       log_events.stamp ->> 'verb' AS verb,
       log_events.stamp ->> 'request_id' AS request_id,
       coalesce((log_events.stamp ->> 'cause')::bigint, 0) AS cause,
       coalesce((log_events.stamp ->> 'observed')::bigint, 0) AS observed,
       log_events.object
FROM log_events JOIN histories USING (history);
"""


def partitions() -> list[str]:
    """The names of the partitions of the log."""
    return [f"log_events_p{number}" for number in range(PARTITIONS)]


def upgrade() -> None:
    """Create all tables, guard the log, and create the readable view `log`."""
    for statement in TABLES:
        op.execute(statement)
    for number, name in enumerate(partitions()):
        op.execute(
            f"CREATE TABLE {name} PARTITION OF log_events "
            f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        )
    op.execute(GUARD_FUNCTION)
    for name in ["log_events", *partitions()]:
        op.execute(
            f"CREATE TRIGGER log_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION log_refuse_change()"
        )
        op.execute(f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER log_is_append_only")
        op.execute(f"REVOKE UPDATE, DELETE, TRUNCATE ON {name} FROM PUBLIC, CURRENT_USER")
    for name in ("histories", "log_heads"):
        op.execute(
            f"CREATE TRIGGER log_is_append_only BEFORE DELETE OR TRUNCATE ON {name} "
            "FOR EACH STATEMENT EXECUTE FUNCTION log_refuse_change()"
        )
    op.execute(READABLE)


def downgrade() -> None:
    """Drop everything. All histories are lost; `redra migrate --down` asks first."""
    op.execute("DROP VIEW log")
    op.execute("DROP TABLE snapshots, checkpoints, leases, log_events, log_heads, histories")
    op.execute("DROP FUNCTION log_refuse_change()")
