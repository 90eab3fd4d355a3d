"""What a new history has, and what recordings and older histories do not get."""

from app.domain.log import ObjectKey
from app.domain.objects import first_objects
from app.domain.objects.access import cluster_roles
from app.domain.objects.kinds.services import ServiceRanges
from app.domain.values import api_groups
from tests.api.serving import serving


async def test_new_cluster_has_the_objects_of_every_cluster():
    async with serving() as server:
        runtime = await server.histories.create_cluster("night")
        objects = runtime.views.objects
        names = {key.name for key in objects.keys(api_groups.RBAC, "clusterroles")}
        assert {"admin", "cluster-admin", "edit", "view", "system:node"} <= names
        bound = {key.name for key in objects.keys(api_groups.RBAC, "clusterrolebindings")}
        assert bound == set(cluster_roles.BINDINGS)
        assert objects.get(ObjectKey("", "endpoints", "default", "kubernetes")) is not None
        slice_key = ObjectKey("discovery.k8s.io", "endpointslices", "default", "kubernetes")
        assert objects.get(slice_key)["ports"][0]["port"] == 6443
        assert runtime.info.settings["controllers"] == {
            "clusterObjects": True,
            "volumeClaims": True,
        }


async def test_history_that_is_no_cluster_begins_empty():
    async with serving() as server:
        runtime = await server.histories.create("plain")
        assert runtime.head.revision == 0
        assert "clusterObjects" not in str(runtime.info.settings)


def test_settings_that_were_chosen_win():
    settings = {"controllers": {"clusterObjects": False, "volumeClaims": False, "off": []}}
    assert first_objects.cluster_settings(settings) == settings


def test_view_is_part_of_edit_and_edit_of_admin():
    rules = {role["metadata"]["name"]: role["rules"] for role in cluster_roles.roles()}
    for part, whole in (("view", "edit"), ("edit", "admin")):
        assert all(rule in rules[whole] for rule in rules[part])
        assert len(rules[whole]) > len(rules[part])


def test_range_of_the_cluster_is_the_one_that_services_get_addresses_from():
    ranges = ServiceRanges()
    (tree,) = [
        command.tree
        for command in first_objects.commands(ranges)
        if command.key.resource == "servicecidrs"
    ]
    assert tree["spec"]["cidrs"] == [str(ranges.addresses)]
