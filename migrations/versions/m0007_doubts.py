"""The columns for the losses of a recording about a claim and about a timeline entry.

What an older running version notices: nothing, it writes rows of its own versions of the views, in
which the columns are empty.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLES = ("view_claims", "view_timeline")
DESCRIPTION = "what the recording lacks of it, such as partial"


def upgrade() -> None:
    """Add the columns, which the next versions of the views fill."""
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN doubt text")
        op.execute(f"COMMENT ON COLUMN {table}.doubt IS '{DESCRIPTION}'")


def downgrade() -> None:
    """Drop the columns; the origins of events hold the same losses."""
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} DROP COLUMN doubt")
