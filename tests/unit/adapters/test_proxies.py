"""NO_PROXY names hosts with all below them, addresses, networks, and ports."""

import pytest

from app.adapters.cluster import proxies

PROXY = "http://proxy.example.com:3128"
ENTRIES = "10.0.0.0/8, example.com:6443,.svc,fd00::2,[fd00::1]:7,192.0.2.1,not/a/network"


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example.com:3128")
    monkeypatch.setenv("NO_PROXY", ENTRIES)


@pytest.mark.parametrize(
    "server",
    [
        "https://11.1.2.3",
        "https://example.com",
        "https://notexample.com:6443",
        "https://svc",
        "https://[fd00::3]",
        "https://192.0.2.10",
    ],
)
def test_host_that_no_entry_names_has_the_proxy(server):
    assert proxies.of_environment(server) == PROXY


@pytest.mark.parametrize(
    "server",
    [
        "http://cluster.example.org",
        "https://10.1.2.3:6443",
        "https://example.com:6443",
        "https://a.example.com:6443",
        "https://a.svc",
        "https://[fd00::1]:7",
        "https://[fd00::2]",
        "https://192.0.2.1",
        "https://127.0.0.2",
        "https://[::1]",
        "https://localhost",
    ],
)
def test_host_that_is_named_or_here_has_none(server):
    assert proxies.of_environment(server) is None


def test_star_names_all(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    assert proxies.of_environment("https://11.1.2.3") is None
