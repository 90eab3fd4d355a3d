"""Deletion of whole histories, each of which leaves a tombstone.

Otherwise the log stays append-only: only rows of the history that the transaction names can be
deleted, and only when that history has a tombstone.

What an older running version notices: a history that it serves is no longer found.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

PARTITIONS = 8

TOMBSTONES = """
CREATE TABLE tombstones (
    history bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    seed numeric(40, 0) NOT NULL,
    settings json NOT NULL,
    created timestamptz NOT NULL,
    revision bigint NOT NULL,
    hash bytea NOT NULL,
    time timestamptz NOT NULL,
    deleted timestamptz NOT NULL,
    deleted_by text NOT NULL,
    CONSTRAINT tombstones_pkey PRIMARY KEY (history)
)
"""

# A statement may delete when the named history has a tombstone; only its rows may go.
FUNCTION = """
CREATE FUNCTION log_refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named text := current_setting('redra.deleted_history', true);
BEGIN
    IF TG_LEVEL = 'STATEMENT' THEN
        IF EXISTS (SELECT FROM tombstones WHERE history::text = named) THEN
            RETURN NULL;
        END IF;
    ELSIF OLD.history::text = named THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$
"""

GUARDED = """
CREATE TRIGGER {name} BEFORE {what} ON {table} FOR EACH {level} EXECUTE FUNCTION {function}()
"""

# The parent of a history becomes null when it is deleted; nothing else of the row may change.
SETTINGS = """
CREATE TRIGGER settings_are_kept BEFORE UPDATE ON histories FOR EACH ROW
WHEN ((OLD.history, OLD.seed, OLD.settings::text, OLD.created, OLD.parent_revision)
      IS DISTINCT FROM
      (NEW.history, NEW.seed, NEW.settings::text, NEW.created, NEW.parent_revision)
      OR (OLD.parent IS DISTINCT FROM NEW.parent {parent}))
EXECUTE FUNCTION log_refuse_change()
"""

PARENT = """
ALTER TABLE histories DROP CONSTRAINT histories_parent_fkey;
ALTER TABLE histories ADD CONSTRAINT histories_parent_fkey
    FOREIGN KEY (parent) REFERENCES histories (history) {action}
"""


def partitions() -> list[str]:
    """The names of the partitions of the log."""
    return [f"log_events_p{number}" for number in range(PARTITIONS)]


def guard(table: str, name: str, what: str, level: str, function: str) -> None:
    """Create a trigger that fires in every replication role."""
    op.execute(GUARDED.format(table=table, name=name, what=what, level=level, function=function))
    op.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def keep_settings(parent: str, action: str) -> None:
    """Replace the guard of settings, and the foreign key of parents."""
    op.execute("DROP TRIGGER settings_are_kept ON histories")
    op.execute(SETTINGS.format(parent=parent))
    op.execute("ALTER TABLE histories ENABLE ALWAYS TRIGGER settings_are_kept")
    for statement in PARENT.format(action=action).split(";"):
        op.execute(statement)


def upgrade() -> None:
    """Create the table, and change the guards to use it."""
    op.execute(TOMBSTONES)
    op.execute(FUNCTION)
    for table in ["log_events", *partitions()]:
        op.execute(f"DROP TRIGGER log_is_append_only ON {table}")
        guard(table, "log_is_append_only", "UPDATE OR TRUNCATE", "STATEMENT", "log_refuse_change")
    for table in ("histories", "log_heads"):
        op.execute(f"DROP TRIGGER log_is_append_only ON {table}")
        guard(table, "log_is_append_only", "TRUNCATE", "STATEMENT", "log_refuse_change")
    for table in ("histories", "log_heads", *partitions(), "log_events"):
        guard(table, "deleted_as_a_whole", "DELETE", "STATEMENT", "log_refuse_delete")
        if table != "log_events":
            guard(table, "deleted_with_its_history", "DELETE", "ROW", "log_refuse_delete")
    guard(
        "tombstones", "tombstones_stay", "UPDATE OR DELETE OR TRUNCATE", "STATEMENT",
        "log_refuse_change",
    )  # fmt: skip
    keep_settings("AND NEW.parent IS NOT NULL", "ON DELETE SET NULL")


def downgrade() -> None:
    """Restore the old guards; the tombstones of deleted histories are lost."""
    keep_settings("", "")
    for table in ("histories", "log_heads", *partitions(), "log_events"):
        op.execute(f"DROP TRIGGER deleted_as_a_whole ON {table}")
        if table != "log_events":
            op.execute(f"DROP TRIGGER deleted_with_its_history ON {table}")
        op.execute(f"DROP TRIGGER log_is_append_only ON {table}")
    op.execute("DROP TABLE tombstones")
    op.execute("DROP FUNCTION log_refuse_delete()")
    for table in ["log_events", *partitions()]:
        guard(
            table, "log_is_append_only", "UPDATE OR DELETE OR TRUNCATE", "STATEMENT",
            "log_refuse_change",
        )  # fmt: skip
    for table in ("histories", "log_heads"):
        op.execute(
            GUARDED.format(
                name="log_is_append_only",
                what="DELETE OR TRUNCATE",
                table=table,
                level="STATEMENT",
                function="log_refuse_change",
            )
        )
