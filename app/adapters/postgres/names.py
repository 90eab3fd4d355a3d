"""Names that the database and its users see."""

from app.domain.log import HistoryId

APPLICATION_NAME = "redra"
"""How our sessions present themselves in pg_stat_activity."""

VIEW_PREFIX = "view_"
"""Begins the names of tables that hold rows of projections."""


def channel(history: HistoryId) -> str:
    """The NOTIFY channel of a history."""
    return f"redra_log_{history}"


def view_name(declared: str) -> str:
    """`pools` and `view_pools` are both kept in `view_pools`."""
    return declared if declared.startswith(VIEW_PREFIX) else VIEW_PREFIX + declared
