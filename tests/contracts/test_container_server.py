"""The log on the PostgreSQL of docker-compose.yml; only where a Docker engine answers."""

import os
import socket
from collections.abc import Iterator

import pytest

from app.adapters.postgres import migrating
from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.domain.log import Actor, Draft, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import check_chain, seal
from app.domain.log.event import GENESIS
from app.domain.values.timestamps import Instant

IMAGE = "postgres:18"


def engine_problem() -> str:
    """Why no container can be started; empty when an engine can be reached."""
    if os.environ.get("DOCKER_HOST"):
        return ""
    path = "/var/run/docker.sock"
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(3)
            probe.connect(path)
    except OSError as problem:
        return f"{path}: {problem.strerror}"
    return ""


@pytest.fixture(scope="module")
def container_url() -> Iterator[str]:
    problem = engine_problem()
    if problem:
        pytest.skip(f"no Docker engine answers: {problem}")
    from testcontainers.postgres import PostgresContainer

    with PostgresContainer(IMAGE, driver=None) as container:
        yield container.get_connection_url()


@pytest.mark.database
async def test_log_on_a_container_keeps_what_it_was_given(container_url: str) -> None:
    await migrating.migrate(container_url)
    async with open_database(container_url) as database:
        log = PostgresLog(database)
        info = await log.create_history("h", seed=1, settings={}, created=Instant(1))
        draft = Draft(
            type=EventType.OBJECT_CREATED,
            key=ObjectKey("", "configmaps", "default", "a"),
            uid="u",
            tree={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            stamp=Stamp(time=Instant(5), actor=Actor(user="alice"), verb="create"),
        )
        event = seal(draft, Revision(1), GENESIS)
        await log.append(info.id, expected=await log.head(info.id), events=[event])
        found = await log.read(info.id, after=Revision(0), limit=10)
        check_chain(found)
        assert found[0].body == event.body
