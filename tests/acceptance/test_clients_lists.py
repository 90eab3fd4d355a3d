"""Lists of 510 ResourceSlices, typed and in pages, by every Python client. Parity: api.md 6."""

import subprocess
import sys
import textwrap

import anyio
import httpx
import lightkube
import pytest
from kubernetes import client as k8s
from kubernetes import config
from kubernetes_asyncio import client as aio
from kubernetes_asyncio import config as aio_config
from lightkube.config.kubeconfig import KubeConfig
from lightkube.resources import resource_v1

from tests import draws
from tests.acceptance.server_process import server_process

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]

COUNT = 510
"""More than the 500 of a page of kubectl and client-go."""
NAMES = [f"slice-{number:04}" for number in range(COUNT)]
WRITERS = 16
PATH = "/apis/resource.k8s.io/v1/resourceslices"


def slice_of(name):
    pool = {"name": name, "generation": 0, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool}
    spec["devices"] = [{"name": "gpu-0", "attributes": {"model": {"string": "x1"}}}]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


async def write_all(url):
    """Create all slices, some at a time."""
    names = iter(NAMES)

    async def write_some():
        for name in names:
            answer = await client.post(PATH, json=slice_of(name))
            assert answer.status_code == 201, answer.text

    async with httpx.AsyncClient(base_url=url) as client, anyio.create_task_group() as tasks:
        for _ in range(WRITERS):
            tasks.start_soon(write_some)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("lists")) as found:
        anyio.run(write_all, found.url)
        yield found


def test_official_client_lists_slices_whole_and_in_pages(server):
    with config.new_client_from_config(str(server.kubeconfig)) as connection:
        api = k8s.ResourceV1Api(connection)
        whole = api.list_resource_slice().items
        assert [found.metadata.name for found in whole] == NAMES
        assert {found.spec.pool.generation for found in whole} == {0}
        names, token = [], None
        while token != "":
            page = api.list_resource_slice(limit=500, _continue=token)
            names += [found.metadata.name for found in page.items]
            token = page.metadata._continue or ""
        assert names == NAMES
        one = api.list_resource_slice(field_selector="spec.nodeName=slice-0477").items
        assert [found.metadata.name for found in one] == ["slice-0477"]


async def test_asyncio_client_lists_slices(server):
    settings = aio.Configuration()
    await aio_config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
    async with aio.ApiClient(settings) as connection:
        found = await aio.ResourceV1Api(connection).list_resource_slice()
    assert [one.metadata.name for one in found.items] == NAMES
    assert {one.spec.pool.generation for one in found.items} == {0}


@pytest.mark.parametrize("size", [None, 250])
def test_lightkube_lists_slices(server, size):
    with lightkube.Client(KubeConfig.from_file(server.kubeconfig)) as client:
        found = list(client.list(resource_v1.ResourceSlice, chunk_size=size))
    assert [one.metadata.name for one in found] == NAMES
    assert {one.spec.pool.generation for one in found} == {0}


def test_kr8s_lists_slices(server):
    # In a process of its own, because kr8s leaves its connection to the end of the process.
    script = textwrap.dedent(
        """
        import sys, kr8s
        from kr8s.objects import new_class
        slices = new_class(
            "ResourceSlice",
            version="resource.k8s.io/v1",
            plural="resourceslices",
            namespaced=False,
        )
        print(*[found.name for found in kr8s.api(kubeconfig=sys.argv[1]).get(slices)])
        """
    )
    command = [sys.executable, "-c", script, str(server.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == NAMES, done.stderr
