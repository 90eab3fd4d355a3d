"""The view of losses counts a value that no write makes as unsure.

What an older running version notices: nothing, it does not read the view.
"""

from alembic import op

from migrations.versions import m0010_losses

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# The same as in app/domain/log/doubts.py; tests/acceptance/test_import.py compares them.
CONTENT = (*m0010_losses.CONTENT, "immutable_changed")


def upgrade() -> None:
    """Replace the view; its columns and the rights to read it stay."""
    _replace(CONTENT)


def downgrade() -> None:
    """Put the view of before back; the origins of events hold the same facts."""
    _replace(m0010_losses.CONTENT)


def _replace(content: tuple[str, ...]) -> None:
    view = m0010_losses.VIEW.replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
    op.execute(view.format(content=", ".join(f"'{loss}'" for loss in content)))
