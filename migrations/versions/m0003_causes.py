"""The column for the causes of a decision.

What an older running version notices: nothing, it writes rows of its own version of the view, in
which the column is empty.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

DESCRIPTION = "why devices were refused: claim, request, cause, nodes, devices, examples"


def upgrade() -> None:
    """Add the column, which the next version of the view fills."""
    op.execute("ALTER TABLE view_decisions ADD COLUMN causes json")
    op.execute(f"COMMENT ON COLUMN view_decisions.causes IS '{DESCRIPTION}'")


def downgrade() -> None:
    """Drop the column; the summary holds the same causes."""
    op.execute("ALTER TABLE view_decisions DROP COLUMN causes")
