"""Paths are taken apart."""

import pytest

from app.api.kubernetes import paths
from app.api.kubernetes.paths import RequestedTimeline, ResourcePath

RESOURCES = [
    ("/api/v1", ResourcePath(group="", version="v1")),
    ("/api/v1/nodes", ResourcePath(group="", version="v1", resource="nodes")),
    ("/api/v1/nodes/n/", ResourcePath(group="", version="v1", resource="nodes", name="n")),
    ("/api/v1/namespaces/a", ResourcePath(group="", version="v1", resource="namespaces", name="a")),
    (
        "/api/v1/namespaces/a/status",
        ResourcePath(group="", version="v1", resource="namespaces", name="a", subresource="status"),
    ),
    (
        "/api/v1/namespaces/a/pods",
        ResourcePath(group="", version="v1", namespace="a", resource="pods"),
    ),
    (
        "/api/v1/watch/namespaces/a/pods",
        ResourcePath(group="", version="v1", namespace="a", resource="pods", is_watch=True),
    ),
    (
        "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c/status",
        ResourcePath(
            group="resource.k8s.io",
            version="v1",
            namespace="a",
            resource="resourceclaims",
            name="c",
            subresource="status",
        ),
    ),
    ("/apis/resource.k8s.io", None),
    ("/api", None),
    ("/version", None),
    ("/api/v1//pods", None),
]


@pytest.mark.parametrize(("path", "found"), RESOURCES, ids=[row[0] for row in RESOURCES])
def test_resource_paths(path, found):
    assert paths.parse_resource(path) == found


PLACES = [
    ("/api/v1", RequestedTimeline(history="default", moment="", prefix="", path="/api/v1")),
    ("/h/night/api", RequestedTimeline(history="night", moment="", prefix="/h/night", path="/api")),
    (
        "/h/night@42/api",
        RequestedTimeline(history="night", moment="42", prefix="/h/night@42", path="/api"),
    ),
    (
        "/h/n@2026-01-02T03:04:05Z/api",
        RequestedTimeline(
            history="n",
            moment="2026-01-02T03:04:05Z",
            prefix="/h/n@2026-01-02T03:04:05Z",
            path="/api",
        ),
    ),
    ("/h/night", RequestedTimeline(history="night", moment="", prefix="/h/night", path="/")),
    ("/h//api", None),
    ("/h/night@/api", None),
]


@pytest.mark.parametrize(("path", "found"), PLACES, ids=[row[0] for row in PLACES])
def test_history_in_front_of_a_path(path, found):
    assert paths.split_history(path) == found
