"""The declared tables are those that the views fill."""

from projections import all_projections, tables


def test_each_view_fills_the_tables_declared_for_it() -> None:
    views = all_projections()
    assert {view.name: view.tables() for view in views} == tables.OF_PROJECTIONS
    assert [table for view in views for table in view.tables()] == list(tables.ALL)
