"""Guards against changes of a history's settings and of the end of its log.

What an older running version notices: nothing, it only renews heads forwards.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# A history may be renamed; its events were decided with all other fields of its row.
SETTINGS = """
CREATE TRIGGER settings_are_kept BEFORE UPDATE ON histories FOR EACH ROW
WHEN ((OLD.history, OLD.seed, OLD.settings::text, OLD.created, OLD.parent_revision)
      IS DISTINCT FROM
      (NEW.history, NEW.seed, NEW.settings::text, NEW.created, NEW.parent_revision)
      OR OLD.parent IS DISTINCT FROM NEW.parent)
EXECUTE FUNCTION log_refuse_change()
"""

# The conditions are evaluated without a call of the function: an append pays next to nothing.
HEADS = """
CREATE TRIGGER head_does_not_go_back BEFORE UPDATE ON log_heads FOR EACH ROW
WHEN (NEW.history <> OLD.history OR NEW.revision < OLD.revision OR NEW.epoch < OLD.epoch
      OR NEW.time < OLD.time OR (NEW.revision = OLD.revision AND NEW.hash <> OLD.hash))
EXECUTE FUNCTION log_refuse_change()
"""


def upgrade() -> None:
    """Create the guards, in every replication role."""
    for statement in (SETTINGS, HEADS):
        op.execute(statement)
    op.execute("ALTER TABLE histories ENABLE ALWAYS TRIGGER settings_are_kept")
    op.execute("ALTER TABLE log_heads ENABLE ALWAYS TRIGGER head_does_not_go_back")


def downgrade() -> None:
    """Remove the guards."""
    op.execute("DROP TRIGGER head_does_not_go_back ON log_heads")
    op.execute("DROP TRIGGER settings_are_kept ON histories")
