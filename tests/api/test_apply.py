"""Server-side apply, in the words that clients look for. Parity: api-surface.md 9."""

import pytest

from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, serving

APPLY = "apply-patch+yaml"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(**container):
    labels = {"app": "d"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i", **container}]},
            },
        },
    }


async def apply(server, path, tree, code=200, manager="me", **query):
    more = "".join(f"&{name}={value}" for name, value in query.items())
    place = f"{path}?fieldManager={manager}{more}"
    return await server.patch(place, tree, code, kind=APPLY)


async def test_first_apply_creates_and_the_next_one_changes_nothing():
    async with serving() as server:
        made = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1"), 201)
        again = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1"))
        assert again == made


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
async def test_undeclared_field_is_refused_in_every_mode_of_validation(mode):
    tree = deployment(foo=1)
    async with serving() as server:
        refused = await apply(server, f"{DEPLOYMENTS}/d", tree, 400, fieldValidation=mode)
        assert refused["message"] == (
            "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): "
            '.spec.template.spec.containers[name="c"].foo: field not declared in schema'
        )


async def test_several_undeclared_fields_and_repeated_keys_are_listed():
    tree = deployment(foo=1, ports=[{"containerPort": 80}, {"containerPort": 80}])
    async with serving() as server:
        refused = await apply(server, f"{DEPLOYMENTS}/d", tree, 400)
        _, _, told = refused["message"].partition("errors:\n")
        assert told.splitlines() == [
            '  .spec.template.spec.containers[name="c"].foo: field not declared in schema',
            '  .spec.template.spec.containers[name="c"].ports: duplicate entries for key '
            '[containerPort=80,protocol="TCP"]',
        ]


async def test_core_kinds_are_named_by_their_bare_version():
    async with serving() as server:
        refused = await apply(server, f"{CONFIG_MAPS}/m", {**config_map(), "foo": 1}, 400)
        assert "(default/m; /v1, Kind=ConfigMap): .foo:" in refused["message"]


async def test_conflict_with_an_updater_names_the_version_it_used():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map(a="1"), user_agent="creator/1")
        refused = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="2"), 409)
        assert refused["message"] == (
            'Apply failed with 1 conflict: conflict with "creator" using v1: .data.a'
        )
        assert refused["details"] == {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "creator" using v1',
                    "field": ".data.a",
                }
            ]
        }


async def test_several_conflicts_are_listed_by_manager():
    async with serving() as server:
        await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1", b="1"), 201, manager="one")
        await apply(server, f"{CONFIG_MAPS}/m", config_map(c="1"), manager="two")
        wanted = config_map(a="2", b="2", c="2")
        refused = await apply(server, f"{CONFIG_MAPS}/m", wanted, 409)
        assert refused["message"] == (
            "Apply failed with 3 conflicts: "
            'conflicts with "one":\n- .data.a\n- .data.b\nconflicts with "two":\n- .data.c'
        )
        forced = await apply(server, f"{CONFIG_MAPS}/m", wanted, force="true")
        assert forced["data"] == {"a": "2", "b": "2", "c": "2"}
        assert [row["manager"] for row in forced["metadata"]["managedFields"]] == ["me"]


async def test_apply_to_another_state_than_named_is_a_conflict():
    async with serving() as server:
        made = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1"), 201)
        await server.patch(f"{CONFIG_MAPS}/m", {"data": {"b": "1"}})
        stale = config_map(a="2")
        stale["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        refused = await apply(server, f"{CONFIG_MAPS}/m", stale, 409)
        assert refused["message"] == (
            'Operation cannot be fulfilled on configmaps "m": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )


async def test_status_is_applied_by_its_subresource_and_must_exist():
    tree = claim()
    tree["status"] = {
        "devices": [{"driver": "d.example.com", "pool": "p", "device": "d0"}],
        "allocation": {
            "devices": {
                "results": [
                    {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}
                ]
            }
        },
    }
    async with serving() as server:
        await apply(server, f"{CLAIMS}/c/status", tree, 404)
        await server.post(CLAIMS, claim())
        found = await apply(server, f"{CLAIMS}/c/status", tree)
        entry = found["metadata"]["managedFields"][0]
        assert (entry["manager"], entry["subresource"]) == ("me", "status")
        assert list(entry["fieldsV1"]) == ["f:status"]


async def test_apply_without_a_manager_is_invalid():
    async with serving() as server:
        refused = await server.patch(f"{CONFIG_MAPS}/m", config_map(), 422, kind=APPLY)
        assert "fieldManager: Required value: is required for apply patch" in refused["message"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, "/, Kind="),
        ({"kind": "ConfigMap"}, "/, Kind=ConfigMap"),
        ({"apiVersion": "v1"}, "/v1, Kind="),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "/v2, Kind=ConfigMap"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v1, Kind=Deployment"),
    ],
)
async def test_configuration_must_say_what_it_is(given, shown):
    async with serving() as server:
        body = {**given, "metadata": {"name": "a"}, "data": {"a": "b"}}
        place = f"{CONFIG_MAPS}/a"
        told = await server.patch(
            f"{place}?fieldManager=m", body, code=400, kind="apply-patch+yaml"
        )
        assert told["message"] == f"invalid object type: {shown}"
        assert told["reason"] == "BadRequest"
        await server.get(place, code=404)
