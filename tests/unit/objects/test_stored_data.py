"""ConfigMaps and Secrets: what they may hold, and what of them never changes."""

import base64
from typing import Any

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import BadRequest, Invalid
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from tests.unit.objects.builders import Cluster, cluster

FROZEN = "field is immutable when `immutable` is set"


def stored(kind: str, **more: Any) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "m", "namespace": "default"},
        **more,
    }


def serving() -> Cluster:
    """A cluster with the rules of a server."""
    made = cluster()
    made.rules = rules_for(Profile())
    return made


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("kind", "change", "text"),
    [
        ("ConfigMap", {"data": {"a": "2"}}, f"data: Forbidden: {FROZEN}"),
        ("ConfigMap", {"binaryData": {"b": "eA=="}}, f"binaryData: Forbidden: {FROZEN}"),
        ("ConfigMap", {"immutable": None}, f"immutable: Forbidden: {FROZEN}"),
        ("ConfigMap", {"immutable": False}, f"immutable: Forbidden: {FROZEN}"),
        ("Secret", {"data": {"a": "eA=="}}, f"data: Forbidden: {FROZEN}"),
        ("Secret", {"stringData": {"a": "x"}}, f"data: Forbidden: {FROZEN}"),
        ("Secret", {"immutable": False}, f"immutable: Forbidden: {FROZEN}"),
    ],
)  # fmt: skip
def test_what_is_immutable_stays(kind, change, text):
    made = serving()
    value = "1" if kind == "ConfigMap" else encoded("1")
    tree = stored(kind, data={"a": value}, immutable=True)
    made.create(tree)
    changed = tree | change
    with pytest.raises(Invalid) as problem:
        made.update({name: value for name, value in changed.items() if value is not None})
    assert problem.value.message == f'{kind} "m" is invalid: {text}'
    assert problem.value.causes[0].reason == "FieldValueForbidden"
    metadata = tree["metadata"] | {"labels": {"a": "b"}}
    assert made.update(tree | {"metadata": metadata})["metadata"]["labels"] == {"a": "b"}


def test_what_may_still_change_can_be_frozen():
    made = serving()
    made.create(stored("ConfigMap", data={"a": "1"}))
    assert made.update(stored("ConfigMap", data={"a": "2"}, immutable=True))["immutable"]


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (
            stored("ConfigMap", data={"a/b": "x"}),
            "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric "
            "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex "
            "used for validation is '[-._a-zA-Z0-9]+')",
        ),
        (
            stored("ConfigMap", data={"..a": "x"}),
            "data[..a]: Invalid value: \"..a\": must not start with '..'",
        ),
        (
            stored("ConfigMap", data={"a": "x"}, binaryData={"a": "eA=="}),
            'data[a]: Invalid value: "a": duplicate of key present in binaryData',
        ),
        (
            stored("ConfigMap", data={"a": "x" * 2**19, "b": "y" * (2**19 + 1)}),
            "[]: Too long: may not be more than 1048576 bytes",
        ),
        (
            stored("Secret", data={"a": encoded("x" * (2**20 + 1))}),
            "data: Too long: may not be more than 1048576 bytes",
        ),
        (
            stored("Secret", type="kubernetes.io/tls", data={"tls.key": "eA=="}),
            "data[tls.crt]: Required value",
        ),
        (
            stored("Secret", type="kubernetes.io/basic-auth"),
            "[data[username]: Required value, data[password]: Required value]",
        ),
        (
            stored(
                "Secret",
                type="kubernetes.io/dockerconfigjson",
                data={".dockerconfigjson": encoded("not")},
            ),
            'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end '
            "of JSON input",
        ),
        (
            stored("Secret", type="kubernetes.io/service-account-token"),
            "metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else value["kind"],
)  # fmt: skip
def test_what_may_not_be_stored_is_refused(tree, text):
    with pytest.raises(Invalid) as problem:
        serving().create(tree)
    assert problem.value.message == f'{tree["kind"]} "m" is invalid: {text}'


def test_a_mebibyte_fits():
    tree = serving().create(stored("Secret", data={"a": encoded("x" * 2**20)}))
    assert len(tree["data"]["a"]) > 2**20


def test_type_of_a_secret_is_kept():
    made = serving()
    made.create(stored("Secret", type="a.example/b"))
    with pytest.raises(Invalid) as problem:
        made.update(stored("Secret"))
    assert problem.value.message == (
        'Secret "m" is invalid: type: Invalid value: "Opaque": field is immutable'
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [("!!", 0), ("YW!j", 2), ("YWJ", 0), ("YWJjYW", 4), ("dGVzdA=", 7), ("Y===", 1),
     ("YQ==YQ==", 4), ("YQ=a", 3), ("YWJj\n!", 5)],
)  # fmt: skip
def test_text_that_is_no_base64_is_not_read(text, place):
    for kind, field in (("Secret", "data"), ("ConfigMap", "binaryData")):
        with pytest.raises(BadRequest) as problem:
            serving().create(stored(kind, **{field: {"a": text}}))
        assert problem.value.message == (
            f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data at input '
            f"byte {place}"
        )


def test_line_ends_in_base64_are_dropped():
    made = serving().create(stored("Secret", data={"a": "YWJj\nYWJj\r\n"}))
    assert made["data"] == {"a": "YWJjYWJj"}
