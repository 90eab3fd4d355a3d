"""${message}

What an older running version notices: TODO.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """TODO: what this adds."""
    op.execute("")


def downgrade() -> None:
    """Undo it."""
    op.execute("")
