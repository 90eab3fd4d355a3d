"""Each test that takes `open_stores` runs once per store."""

from functools import partial

import anyio
import pytest
from sqlalchemy import MetaData
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from app.adapters.postgres import tables
from tests.conftest import in_thread, say
from tests.contracts.stores import PROJECTIONS, OpenStores, memory_stores, postgres_stores


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.database)])
def open_stores(request: pytest.FixtureRequest) -> OpenStores:
    """Opens the ports of a store. On PostgreSQL, opening again shows what was written."""
    if request.param == "memory":
        return memory_stores
    url = request.getfixturevalue("database_url")
    declared = [table for tables in PROJECTIONS.values() for table in tables]
    made = tables.view_tables(declared, MetaData())
    dialect = postgresql.dialect()
    for table in made.values():
        in_thread(partial(anyio.run, say, url, str(CreateTable(table).compile(dialect=dialect))))
    return partial(postgres_stores, url)
