"""Each test that takes `open_stores` runs once per store."""

from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import anyio
import pytest
from sqlalchemy import MetaData
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from app.adapters.postgres import tables
from tests.conftest import in_thread, new_database, say
from tests.contracts.stores import PROJECTIONS, OpenStores, memory_stores, postgres_stores


@pytest.fixture(scope="session")
def views_template(server_url: str, template: str) -> Iterator[str]:
    """The name of a migrated database with the tables of all views, to copy."""
    declared = [table for tables in PROJECTIONS.values() for table in tables]
    made = tables.view_tables(declared, MetaData())
    dialect = postgresql.dialect()
    text = ";".join(str(CreateTable(table).compile(dialect=dialect)) for table in made.values())
    with new_database(server_url, "views", template) as url:
        in_thread(partial(anyio.run, say, url, text))
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.database)])
def open_stores(request: pytest.FixtureRequest) -> Iterator[OpenStores]:
    """Opens the ports of a store. On PostgreSQL, opening again shows what was written."""
    if request.param == "memory":
        yield memory_stores
        return
    address = request.getfixturevalue("server_url")
    template = request.getfixturevalue("views_template")
    with new_database(address, template=template) as url:
        yield partial(postgres_stores, url)
