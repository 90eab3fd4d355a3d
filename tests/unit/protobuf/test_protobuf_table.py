"""The field table agrees with the published one, and covers what is served."""

import json

from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.protobuf import fields
from app.domain.objects.protobuf.fields import MESSAGES
from app.domain.values.protobuf import SCALARS, SPECIAL
from tests.shared_data import shared_path
from tests.together import together

PACKAGES = {
    "meta.v1": "k8s.io.apimachinery.pkg.apis.meta.v1",
}


def published():
    return json.loads(shared_path("openapi", "protobuf-fields.json").read_text())


def published_name(name):
    package, _, message = name.rpartition(".")
    return f"{PACKAGES.get(package, f'k8s.io.api.{package}')}.{message}"


def test_every_field_agrees_with_the_published_table():
    table = published()
    compared = 0
    for name, message in MESSAGES.items():
        facts = table.get(published_name(name))
        if facts is None:
            continue
        assert {str(number) for number in message} == set(facts), name
        for number, field in message.items():
            fact = facts[str(number)]
            assert field.name == fact["name"], (name, number)
            assert field.is_map == ("map" in fact), (name, number)
            assert field.is_list == fact.get("repeated", False), (name, number)
            assert field.is_inline == fact.get("inline", False), (name, number)
            kind = fact["map"][1] if "map" in fact else fact["type"]
            if field.type in SCALARS | SPECIAL:
                assert kind.split(".")[-1] == field.type, (name, number)
            else:
                assert published_name(field.type) == kind, (name, number)
            if not (field.is_map or field.is_list or field.is_inline):
                omits = bool(fact.get("omitempty")) and not fact.get("ptr")
                assert field.omits_zero == omits, (name, number)
            compared += 1
    assert compared > 1_500


def test_every_message_that_is_referred_to_exists():
    for name, message in MESSAGES.items():
        for field in message.values():
            known = field.type in SCALARS | SPECIAL or field.type in MESSAGES
            assert known, (name, field.name)


NOT_READ = {"ResourceSlicePatch"}
"""Kinds that no typed Go client knows."""


@together(
    [
        kind
        for kind in registry.served_kinds(Profile(gates={"DRAResourcePoolStatus": True}))
        if kind.kind not in NOT_READ
    ],
    lambda kind: kind.kind,
)
def test_protobuf_bodies_of_served_kinds_are_read(kind):
    for group, version in kind.group_versions:
        assert fields.message_name(group, version, kind.kind), (group, version)


def test_delete_options_of_any_group_are_the_same_message():
    named = fields.message_name("resource.k8s.io", "v1", "DeleteOptions")
    assert named == "meta.v1.DeleteOptions"
