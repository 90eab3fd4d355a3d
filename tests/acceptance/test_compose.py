"""The services of docker-compose.yml do their work together, as processes beside a PostgreSQL.

Commands, environments, volumes and the order of starts are those of the file; only what a container
network gives is put in their place: the address of the database, and a free port.
"""

import asyncio
import re
import time
from pathlib import Path

import asyncpg
import httpx
import pytest
import yaml

from tests import draws
from tests.patience import PATIENCE_SECONDS
from tests.redra_process import ROOT, RedraProcess

pytestmark = [draws.modules_in_turn("deliveries"), pytest.mark.database, pytest.mark.slow]

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


class Service:
    """One service of the file as a process."""

    def __init__(self, name: str, database_url: str, folder: Path) -> None:
        written = COMPOSE["services"][name]
        program, *words = written["command"]
        assert program == "redra"
        # The published port may be taken on this machine.
        words = [word.replace("127.0.0.1:8080", "127.0.0.1:0") for word in words]
        self.name = name
        self.words = words
        self.environment = dict(written["environment"])
        assert "@postgres/" in self.environment["REDRA_DATABASE_URL"]
        self.environment["REDRA_DATABASE_URL"] = database_url
        for volume in written.get("volumes", []):
            source, target = volume.split(":")
            assert source in COMPOSE["volumes"]
            for key, value in self.environment.items():
                if value == target:
                    (folder / source).mkdir(exist_ok=True)
                    self.environment[key] = str(folder / source)
        self.log = folder / f"{name}.log"

    def start(self) -> RedraProcess:
        """Start it."""
        with self.log.open("a") as errors:
            return RedraProcess(self.words, environment=self.environment, stderr=errors)


def until(ask, what: str):
    """The first true answer."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.05)  # waits: for processes that do not say when they have decided
    raise AssertionError(f"{what} did not happen")


def write_cluster(client: httpx.Client, root: str) -> None:
    """A node with a device, a class, a claim, a pod that wants it, and a secret."""
    claims = f"{root}/apis/resource.k8s.io/v1"
    node = {
        "metadata": {"name": "n1"},
        "status": {
            "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d.example.com", "nodeName": "n1", "pool": pool}
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    wanted = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "one"}],
    }
    for path, tree in (
        (f"{root}/api/v1/nodes", node),
        (f"{claims}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}}),
        (
            f"{claims}/resourceslices",
            {"metadata": {"name": "s"}, "spec": {**devices, "devices": [{"name": "d"}]}},
        ),
        (
            f"{claims}/namespaces/default/resourceclaims",
            {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [request]}}},
        ),
        (
            f"{root}/api/v1/namespaces/default/secrets",
            {"metadata": {"name": "s"}, "stringData": {"key": "value"}},
        ),
        (f"{root}/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": wanted}),
    ):
        made = client.post(path, json=tree)
        assert made.status_code == 201, (path, made.text)


def is_placed(client: httpx.Client, root: str) -> bool:
    pod = client.get(f"{root}/api/v1/namespaces/default/pods/p").json()
    return pod["spec"].get("nodeName") == "n1"


async def rows_of(url: str) -> list[tuple[str, str]]:
    """History and claim of each row of the view of claims."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT h.name AS history, v.name FROM view_claims v JOIN histories h USING (history)"
        )
    finally:
        await connection.close()
    return sorted((row["history"], row["name"]) for row in rows)


def test_services_schedule_pods_of_a_history_made_after_their_start(empty_database_url, tmp_path):
    url = empty_database_url
    migrated = Service("migrate", url, tmp_path).start()
    said, _ = migrated.communicate(timeout=60)
    assert migrated.returncode == 0, said
    running = []
    try:
        for name in ("api", "workers"):
            service = Service(name, url, tmp_path)
            running.append((service, service.start()))
        found = re.search(r"http://127\.0\.0\.1:\d+", running[0][1].stdout.readline())
        assert found, [service.log.read_text() for service, _ in running]
        with httpx.Client(base_url=found.group(), timeout=PATIENCE_SECONDS) as client:
            made = client.post("/redra/v1/histories", json={"name": "night"})
            assert made.status_code == 201, made.text
            for root in ("", "/h/night"):
                write_cluster(client, root)
                until(lambda root=root: is_placed(client, root), f"placing at {root}/")
            rows = [("default", "one"), ("night", "one")]
            until(lambda: asyncio.run(rows_of(url)) == rows, "writing the view tables")
            assert client.get("/readyz").text == "ok"
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.communicate(timeout=30)
        statuses = [process.returncode for _, process in running]
    assert statuses == [0, 0], [service.log.read_text() for service, _ in running]


def test_services_share_the_folder_of_the_keys():
    shared = {tuple(COMPOSE["services"][name]["volumes"]) for name in ("migrate", "api", "workers")}
    assert len(shared) == 1
