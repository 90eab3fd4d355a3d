"""An index that leads from the name of an object to the Event objects that warn about it.

An Event object may have any name. The function takes the name of its object from the text of the
stored body. It gives an empty text where that is not certain, as when the body has more than one
field of these names or the name is escaped: readers look at those, too. It never fails, because
appends use it.

What an older running version notices: nothing, it does not read the index.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# A pattern would cost ten times as much. Before the name, only a field path may hold braces, so
# what is read is the field of this object. A name is at most 253 characters long, and a row of an
# index cannot be much longer than 2,000.
FUNCTION = r"""
CREATE FUNCTION log_warned(body text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    field text := '"involvedObject":';
    place integer := strpos(body, field);
    part text;
    before text;
BEGIN
    IF place = 0 THEN
        field := '"regarding":';
        place := strpos(body, field);
    ELSIF strpos(body, '"regarding":') > 0 THEN
        RETURN '';
    END IF;
    part := substr(body, place + length(field));
    IF place = 0 OR left(part, 1) <> '{' OR strpos(part, field) > 0 THEN
        RETURN '';
    END IF;
    part := substr(part, 2, 2000);
    place := strpos(part, '"name":"');
    before := left(part, place - 1);
    part := substr(part, place + 8, 254);
    IF place = 0 OR strpos(part, '"') < 2 THEN
        RETURN '';
    END IF;
    part := left(part, strpos(part, '"') - 1);
    IF strpos(before || part, E'\\') > 0 THEN
        RETURN '';
    END IF;
    place := strpos(before, '"fieldPath":"');
    IF place > 0 THEN
        before := left(before, place - 1) || substr(before, place + 13
                  + strpos(substr(before, place + 13), '"'));
    END IF;
    IF strpos(before, '{') > 0 OR strpos(before, '}') > 0 THEN
        RETURN '';
    END IF;
    RETURN part;
END
$$
"""

INDEX = """
CREATE INDEX log_events_warned
    ON log_events (history, (log_warned(object::text) COLLATE "C"), revision)
    WHERE resource = 'events' AND type = 'ObjectCreated' AND strpos(object::text, '"Warning"') > 0
"""


def upgrade() -> None:
    """Make the function and the index; the warnings of long histories are read once for that."""
    for statement in (FUNCTION, INDEX):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Drop both."""
    op.execute("DROP INDEX log_events_warned")
    op.execute("DROP FUNCTION log_warned")
