"""Which webhooks may be called: what the setting means, and what gets past it."""

import base64

import pytest

from app.domain.errors import InputError
from app.domain.objects import webhook_targets

PEM = "-----BEGIN CERTIFICATE-----"
ALLOWED = "https://hooks.example:9443/a, hooks/checker=https://127.0.0.1:1234 other/x:8443=https://[::1]:5/deep/"


def url(text):
    return {"url": text, "caBundle": base64.b64encode(PEM.encode()).decode()}


def service(namespace, name, **more):
    return {"service": {"namespace": namespace, "name": name, **more}}


def test_nothing_is_called_without_a_setting():
    assert webhook_targets.parse("").is_empty
    assert webhook_targets.NONE.find(url("https://hooks.example:9443/a")) is None
    assert webhook_targets.NONE.find(service("hooks", "checker")) is None


@pytest.mark.parametrize("path", ["", "/", "/b", "/deep/er"])
def test_path_below_an_address_is_called(path):
    found = webhook_targets.parse(ALLOWED).find(url(f"https://hooks.example:9443/a{path}"))
    assert found is not None
    assert (found.host, found.port, found.path) == ("hooks.example", 9443, f"/a{path}")
    assert (found.server_name, found.authority) == ("hooks.example", PEM)


@pytest.mark.parametrize(
    "text",
    [
        "https://hooks.example/a",
        "https://hooks.example:9443/",
        "https://hooks.example:9443/ab",
        "https://hooks.example:9443/a/../b",
        "https://hooks.example:9443/a?x=/a",
        "http://hooks.example:9443/a",
        "https://hooks.example.evil:9443/a",
        "https://hooks.example:9443@evil/a",
        "https://evil/https://hooks.example:9443/a",
        "https://hooks.example:94430/a",
        "https://hooks.example:9443/a\r\nHost: evil",
        "https://127.0.0.1:1234/",
        "",
    ],
)
def test_other_address_is_not_called(text):
    assert webhook_targets.parse(ALLOWED).find(url(text)) is None


def test_service_is_called_where_the_setting_says_under_its_own_name():
    found = webhook_targets.parse(ALLOWED).find(
        service("hooks", "checker", port=443, path="/check")
    )
    assert found is not None
    assert (found.host, found.port, found.path) == ("127.0.0.1", 1234, "/check")
    assert found.server_name == "checker.hooks.svc"
    assert found.shown == "https://checker.hooks.svc:443/check"
    deep = webhook_targets.parse(ALLOWED).find(service("other", "x", port=8443, path="p"))
    assert deep is not None
    assert (deep.host, deep.path) == ("::1", "/deep/p")


def test_other_service_or_port_is_not_called():
    allowed = webhook_targets.parse(ALLOWED)
    assert allowed.find(service("hooks", "other")) is None
    assert allowed.find(service("checker", "hooks")) is None
    assert allowed.find(service("other", "x", port=443)) is None
    assert allowed.find(service("hooks", "checker", path="a\r\nHost: evil")) is None


@pytest.mark.parametrize(
    "text", ["hooks.example", "http://a", "a=https://b", "a/b=c", "https://", "a/b:x=https://c"]
)
def test_setting_that_names_no_webhook_is_refused(text):
    with pytest.raises(InputError, match="names no webhook"):
        webhook_targets.parse(text)
