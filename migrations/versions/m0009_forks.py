"""Forks: histories that begin with the events of another history.

`is_fork` distinguishes a fork from a copy, which has a parent too. `beginning` holds the start of
its chain: settings, seed and creation time of the first history of its line. Both are as fixed as
the settings. The parent of a fork cannot be deleted before the fork.

What an older running version notices: nothing. It does not read the parent's events, so a fork that
it serves seems to lack its beginning; only this version makes forks.
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

FORKED = "SELECT name FROM histories WHERE is_fork ORDER BY name"


def keep_settings(*, old: str = "", new: str = "", fork: str = "") -> None:
    """Replace the guard of settings."""
    op.execute("DROP TRIGGER settings_are_kept ON histories")
    op.execute(GUARD.format(old=old, new=new, fork=fork))
    op.execute("ALTER TABLE histories ENABLE ALWAYS TRIGGER settings_are_kept")


def upgrade() -> None:
    """Add the columns, and extend the guard to them."""
    op.execute("ALTER TABLE histories ADD COLUMN beginning json")
    op.execute("ALTER TABLE histories ADD COLUMN is_fork boolean NOT NULL DEFAULT false")
    keep_settings(
        old=", OLD.beginning::text, OLD.is_fork",
        new=", NEW.beginning::text, NEW.is_fork",
        fork=" OR OLD.is_fork",
    )


def downgrade() -> None:
    """Drop the columns. Refused while there are forks, which could not be read any more."""
    forks = op.get_bind().exec_driver_sql(FORKED).scalars().all()
    if forks:
        raise RuntimeError(f"there are forks: {', '.join(forks)}; delete them first")
    keep_settings()
    op.execute("ALTER TABLE histories DROP COLUMN is_fork")
    op.execute("ALTER TABLE histories DROP COLUMN beginning")
