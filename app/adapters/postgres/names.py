"""Names that the database and its users see."""

from app.domain.log import HistoryId

APPLICATION_NAME = "redra"
"""The name of redra's sessions in pg_stat_activity."""

VIEW_PREFIX = "view_"
"""The prefix of the tables that hold rows of projections."""


def channel(history: HistoryId) -> str:
    """The NOTIFY channel of a history."""
    return f"redra_log_{history}"


def view_name(declared: str) -> str:
    """The name of a view table: both `pools` and `view_pools` give `view_pools`."""
    return declared if declared.startswith(VIEW_PREFIX) else VIEW_PREFIX + declared
