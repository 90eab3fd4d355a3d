"""The view of the losses of recordings, event by event.

Joined by history and revision, it states for a row of the other views whether the event behind the
row was recorded completely.

What an older running version notices: nothing, it does not read the view.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# The same as in app/domain/log/doubts.py; tests/acceptance/test_import.py compared them until 0011.
CONTENT = (
    "contradicted",
    "encrypted",
    "gap",
    "metadata_only",
    "no_baseline",
    "no_deletes",
    "no_status",
    "printed",
    "redacted",
    "spec_only",
    "synthetic_create",
    "truncated_body",
    "undecodable",
    "unknown_patch",
    "version_guess",
)

VIEW = """
CREATE VIEW losses AS
SELECT histories.name AS history,
       log_events.revision,
       log_events.time,
       log_events.type,
       log_events."group",
       log_events.resource,
       log_events.namespace,
       log_events.name,
       coalesce(log_events.stamp -> 'origin' ->> 'quality', 'full') AS quality,
       coalesce(log_events.stamp -> 'origin' -> 'losses', '[]') AS losses,
       CASE log_events.type
           WHEN 'ObjectDeleted' THEN false
           WHEN 'GapObserved' THEN log_events.resource <> 'clocks'
           ELSE coalesce(log_events.stamp -> 'origin' ->> 'quality', '')
                    IN ('partial', 'identity')
                OR EXISTS (
                    SELECT FROM json_array_elements_text(
                        coalesce(log_events.stamp -> 'origin' -> 'losses', '[]')
                    ) AS loss
                    WHERE loss IN ({content})
                )
       END AS unsure
FROM log_events JOIN histories USING (history)
WHERE log_events.type = 'GapObserved'
   OR (log_events.type IN ('ObjectCreated', 'ObjectUpdated', 'ObjectDeleted')
       AND (log_events.stamp -> 'origin' -> 'losses' IS NOT NULL
            OR log_events.stamp -> 'origin' ->> 'quality' IS NOT NULL))
"""

COMMENT = """
COMMENT ON VIEW losses IS
'events that a recording holds in part, and gaps; unsure: the content may have been another'
"""


def upgrade() -> None:
    """Create the view of the losses in the origins of events."""
    op.execute(VIEW.format(content=", ".join(f"'{loss}'" for loss in CONTENT)))
    op.execute(COMMENT)


def downgrade() -> None:
    """Drop the view; the origins of events hold the same facts."""
    op.execute("DROP VIEW losses")
