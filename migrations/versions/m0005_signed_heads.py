"""The table for signed heads from bundles.

What an older running version notices: nothing, it does not know the table.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE signed_heads (
    history bigint CONSTRAINT signed_heads_history_fkey REFERENCES histories (history),
    revision bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    head json NOT NULL,
    CONSTRAINT signed_heads_pkey PRIMARY KEY (history, revision, key)
)
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(TABLE)


def downgrade() -> None:
    """Drop the table; later exports of bundles lack the heads that others signed."""
    op.execute("DROP TABLE signed_heads")
