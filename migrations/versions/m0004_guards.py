"""The settings of a history and the end of its log cannot be changed in place.

What an older running version notices: nothing, it only renews heads forwards.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# A history may get another name; everything else of its row is what its events were decided with.
SETTINGS = """
CREATE TRIGGER settings_are_kept BEFORE UPDATE ON histories FOR EACH ROW
WHEN ((OLD.history, OLD.seed, OLD.settings::text, OLD.created, OLD.parent_revision)
      IS DISTINCT FROM
      (NEW.history, NEW.seed, NEW.settings::text, NEW.created, NEW.parent_revision)
      OR OLD.parent IS DISTINCT FROM NEW.parent)
EXECUTE FUNCTION log_refuse_change()
"""

# The conditions are looked at without calling the function: an append pays next to nothing.
HEADS = """
CREATE TRIGGER head_does_not_go_back BEFORE UPDATE ON log_heads FOR EACH ROW
WHEN (NEW.history <> OLD.history OR NEW.revision < OLD.revision OR NEW.epoch < OLD.epoch
      OR NEW.time < OLD.time OR (NEW.revision = OLD.revision AND NEW.hash <> OLD.hash))
EXECUTE FUNCTION log_refuse_change()
"""


def upgrade() -> None:
    """Guard the rows, in every replication role."""
    for statement in (SETTINGS, HEADS):
        op.execute(statement)
    op.execute("ALTER TABLE histories ENABLE ALWAYS TRIGGER settings_are_kept")
    op.execute("ALTER TABLE log_heads ENABLE ALWAYS TRIGGER head_does_not_go_back")


def downgrade() -> None:
    """Remove the guards."""
    op.execute("DROP TRIGGER head_does_not_go_back ON log_heads")
    op.execute("DROP TRIGGER settings_are_kept ON histories")
