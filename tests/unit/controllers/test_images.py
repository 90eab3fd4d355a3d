"""Nodes that have a pod's images already (ImageLocality); all numbers are computed by hand."""

import pytest

from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.framework import image_locality
from app.domain.controllers.scheduling.framework.image_locality import ImageIndex, WantedImages
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, check_decisions

MIB = 1024 * 1024


def image(name: str, mebibytes: int) -> JsonObject:
    return {"names": [name], "sizeBytes": mebibytes * MIB}


def wanted(*names: str) -> WantedImages:
    return WantedImages(names=names, count=len(names))


@pytest.mark.parametrize(
    ("mebibytes", "containers", "score"),
    [
        (0, 1, 0),
        (23, 1, 0),
        (200, 1, 18),  # 100 * 177 / 977 = 18.1
        (1000, 1, 100),
        (4000, 1, 100),
        (1000, 2, 49),  # 100 * 977 / 1977 = 49.4
        (2000, 2, 100),
    ],
)
def test_sum_is_spread_over_the_scores(mebibytes, containers, score):
    assert image_locality.score(mebibytes * MIB, containers) == score


def test_size_counts_by_the_share_of_nodes_that_have_the_image():
    index = ImageIndex()
    for number in range(4):
        index.put(f"n{number}", [image("registry/app:1", 500)])
    # 500 MiB * 4/10 = 200 MiB
    assert index.scores(wanted("registry/app:1"), 10) == dict.fromkeys(("n0", "n1", "n2", "n3"), 18)
    # 500 MiB * 4/4: 100 * 477 / 977 = 48.8
    assert index.scores(wanted("registry/app:1"), 4)["n0"] == 48


def test_images_of_several_containers_add_up():
    index = ImageIndex()
    index.put("n1", [image("a:1", 800), image("b:1", 400)])
    index.put("n2", [image("b:1", 400)])
    # n1: 800/2 + 400 = 800, n2: 400; 100 * 777 / 1977 = 39.3 and 100 * 377 / 1977 = 19.1
    assert index.scores(wanted("a:1", "b:1"), 2) == {"n1": 39, "n2": 19}


def test_images_that_are_gone_do_not_count():
    index = ImageIndex()
    index.put("n1", [image("a:1", 1000)])
    index.put("n2", [image("a:1", 1000)])
    assert index.scores(wanted("a:1"), 2) == {"n1": 100, "n2": 100}
    index.put("n2", [])
    # 1000 / 2 = 500: 100 * 477 / 977
    assert index.scores(wanted("a:1"), 2) == {"n1": 48}
    index.remove("n1")
    assert index.scores(wanted("a:1"), 2) == {}
    assert not index


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("app", "app:latest"),
        ("registry:5000/app", "registry:5000/app:latest"),
        ("registry:5000/app:2", "registry:5000/app:2"),
        ("app@sha256:abc", "app@sha256:abc"),
    ],
)
def test_name_without_a_tag_is_the_latest(name, full):
    assert image_locality.full_name(name) == full


@pytest.mark.parametrize(("counts_volumes", "count"), [(True, 3), (False, 2)])
def test_image_volumes_add_to_the_sum_and_since_1_37_to_its_bound(counts_volumes, count):
    spec = {
        "initContainers": [{"name": "i", "image": "init"}],
        "containers": [{"name": "c", "image": "app:1"}],
        "volumes": [
            {"name": "v", "image": {"reference": "data:1"}},
            {"name": "e", "emptyDir": {}},
        ],
    }
    wanted = image_locality.wanted_by({"spec": spec}, counts_volumes=counts_volumes)
    assert wanted == WantedImages(names=("init:latest", "app:1", "data:1"), count=count)


def with_image_on(node: str, **options) -> Cluster:
    made = Cluster(**options)
    for name in ("n1", "n2", "n3"):
        made.node(name)
        if name == node:
            found = [{"names": ["busybox:1"], "sizeBytes": 3000 * MIB}]
            made.patch("nodes", name, {"status": {"images": found}}, subresource="status")
    return made.settle()


@pytest.mark.parametrize("quirk", [True, False])
def test_pod_goes_where_its_image_is(quirk):
    made = with_image_on("n3", options=ControllerOptions(quirks=ControllerQuirks(r4=quirk)))
    made.pod()
    made.settle()
    assert made.must("pods", "pod")["spec"]["nodeName"] == "n3"
    decisions, effects = check_decisions(made)
    assert (decisions.differences, effects.differences) == ((), ())


def test_small_image_draws_nobody():
    made = with_image_on("n3")
    found = [{"names": ["busybox:1"], "sizeBytes": 60 * MIB}]  # 60 / 3 is below 23
    made.patch("nodes", "n3", {"status": {"images": found}}, subresource="status")
    made.pod()
    made.settle()
    assert made.must("pods", "pod")["spec"]["nodeName"] == "n1"
