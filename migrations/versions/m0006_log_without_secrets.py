"""The readable log and the table of objects without the content of Secrets.

The next version of the projection writes the rows of the table.

What an older running version notices: nothing, it does not read the view.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# The columns and their order stay the same, so that readers of the view keep working.
VIEW = """
CREATE OR REPLACE VIEW log AS
SELECT histories.name AS history,
       log_events.revision,
       log_events.time,
       log_events.type,
       log_events."group",
       log_events.resource,
       log_events.namespace,
       log_events.name,
       log_events.uid,
       log_events.stamp -> 'actor' ->> 'user' AS actor,
       log_events.stamp ->> 'verb' AS verb,
       log_events.stamp ->> 'request_id' AS request_id,
       coalesce((log_events.stamp ->> 'cause')::bigint, 0) AS cause,
       coalesce((log_events.stamp ->> 'observed')::bigint, 0) AS observed,
       {object} AS object
FROM log_events JOIN histories USING (history)
"""

WITHOUT_SECRETS = """
CASE WHEN log_events."group" = '' AND log_events.resource = 'secrets'
     THEN json_build_object(
         'apiVersion', 'v1',
         'kind', 'Secret',
         'metadata', json_build_object(
             'name', log_events.name,
             'namespace', log_events.namespace,
             'uid', log_events.uid,
             'resourceVersion', log_events.revision::text))
     ELSE log_events.object END
"""


COMMENT = "COMMENT ON COLUMN view_objects.object IS '{}'"


def upgrade() -> None:
    """Show only the identity of a Secret."""
    op.execute(VIEW.format(object=WITHOUT_SECRETS))
    op.execute(COMMENT.format("the object in the storage version; of a Secret without values"))


def downgrade() -> None:
    """Show the whole content again."""
    op.execute(VIEW.format(object="log_events.object"))
    op.execute(COMMENT.format("the object in the storage version"))
