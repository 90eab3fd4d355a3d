"""A history may begin with the events of another.

`beginning` says what the chain of such a fork begins with (the settings, seed and creation time of
the first of its line), and tells forks from copies, which have a parent too. It is as fixed as the
settings. The parent of a fork stays as long as the fork does.

What an older running version notices: nothing. It does not read the parent's events, so a fork that
it serves seems to lack its beginning; forks are made by this version only.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

GUARD = """
CREATE TRIGGER settings_are_kept BEFORE UPDATE ON histories FOR EACH ROW
WHEN ((OLD.history, OLD.seed, OLD.settings::text, OLD.created, OLD.parent_revision{old})
      IS DISTINCT FROM
      (NEW.history, NEW.seed, NEW.settings::text, NEW.created, NEW.parent_revision{new})
      OR (OLD.parent IS DISTINCT FROM NEW.parent AND (NEW.parent IS NOT NULL{fork})))
EXECUTE FUNCTION log_refuse_change()
"""

FORKED = "SELECT name FROM histories WHERE beginning IS NOT NULL ORDER BY name"


def keep_settings(*, old: str = "", new: str = "", fork: str = "") -> None:
    """Make the guard of settings anew."""
    op.execute("DROP TRIGGER settings_are_kept ON histories")
    op.execute(GUARD.format(old=old, new=new, fork=fork))
    op.execute("ALTER TABLE histories ENABLE ALWAYS TRIGGER settings_are_kept")


def upgrade() -> None:
    """Add the column, and let the guard know it."""
    op.execute("ALTER TABLE histories ADD COLUMN beginning json")
    keep_settings(
        old=", OLD.beginning::text",
        new=", NEW.beginning::text",
        fork=" OR OLD.beginning IS NOT NULL",
    )


def downgrade() -> None:
    """Drop the column. Refused while there are forks: nobody could read them."""
    forks = op.get_bind().exec_driver_sql(FORKED).scalars().all()
    if forks:
        raise RuntimeError(f"there are forks: {', '.join(forks)}; delete them first")
    keep_settings()
    op.execute("ALTER TABLE histories DROP COLUMN beginning")
