"""The requests of the JavaScript client `@kubernetes/client-node` 1.4, as it was seen to send them.

The client itself is not part of the project. What it was made to do against a server: list and
informer, each patch, server-side apply, watch, generic objects found by discovery, scale and a
review. Parity: api.md 13.
"""

import pytest
import yaml

from app.bootstrap import kubeconfigs
from app.bootstrap.kubeconfigs import Access
from tests.acceptance.server_process import following, server_process

LIST = {"Accept": "application/json, */*;q=0.8"}
WATCH = {"Accept": "*/*"}
CONFIG_MAPS = "/api/v1/namespaces/js/configmaps"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/js/resourceclaims"
PATCHES = [
    ("application/merge-patch+json", {"data": {"a": "merged"}}, "merged"),
    (
        "application/json-patch+json",
        [{"op": "replace", "path": "/data/a", "value": "replaced"}],
        "replaced",
    ),
    ("application/strategic-merge-patch+json", {"data": {"a": "strategic"}}, "strategic"),
]


def cluster_of(text):
    (found,) = yaml.safe_load(text)["clusters"]
    return found["cluster"]


def test_kubeconfig_lets_the_client_speak_to_a_server_without_tls(tmp_path):
    path = kubeconfigs.write(tmp_path / "plain", Access(url="http://127.0.0.1:1", token="t"))
    assert cluster_of(path.read_text())["insecure-skip-tls-verify"] is True


def test_kubeconfig_for_an_address_with_tls_gives_no_leave_to_skip_it(tmp_path):
    path = kubeconfigs.write(tmp_path / "plain", Access(url="http://127.0.0.1:1", token="t"))
    told = kubeconfigs.for_moments(path, histories=(), moments=(), server="https://lab:443")
    assert cluster_of(told) == {"server": "https://lab:443"}
    authority = tmp_path / "authority"
    authority.write_text("x")
    safe = kubeconfigs.write(
        tmp_path / "safe", Access(url="https://127.0.0.1:1", authority=authority)
    )
    assert "insecure-skip-tls-verify" not in cluster_of(safe.read_text())


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        server_process(tmp_path_factory.mktemp("node"), "js") as server,
        server.client(headers=LIST) as made,
    ):
        yield made


@pytest.mark.database
@pytest.mark.slow
class TestSequences:
    def test_informer_lists_and_then_follows(self, client):
        listed = client.get(CONFIG_MAPS).json()
        version = listed["metadata"]["resourceVersion"]
        with following(client, CONFIG_MAPS, resourceVersion=version) as watch:
            assert watch.answer.headers["content-type"].startswith("application/json")
            body = {"metadata": {"name": "a"}, "data": {"a": "b"}}
            assert client.post(CONFIG_MAPS, json=body).status_code == 201
            added = next(watch)
            assert (added["type"], added["object"]["kind"]) == ("ADDED", "ConfigMap")
            for content_type, patch, expected in PATCHES:
                answer = client.patch(
                    f"{CONFIG_MAPS}/a", json=patch, headers={"Content-Type": content_type}
                )
                assert answer.json()["data"] == {"a": expected}, answer.text
                assert next(watch)["object"]["data"] == {"a": expected}
            gone = client.delete(f"{CONFIG_MAPS}/a").json()
            assert (gone["kind"], gone["status"]) == ("Status", "Success")
            assert next(watch)["type"] == "DELETED"

    def test_generic_objects_are_found_by_one_group_version_and_applied(self, client):
        found = client.get("/apis/resource.k8s.io/v1").json()["resources"]
        (claims,) = [row for row in found if row["name"] == "resourceclaims"]
        assert (claims["kind"], claims["namespaced"]) == ("ResourceClaim", True)
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "js"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        }
        place = f"{CLAIMS}/c?fieldManager=js&force=true"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        made = client.patch(place, json=body, headers=headers)
        assert made.status_code == 201, made.text
        again = client.patch(place, json=body, headers=headers)
        assert again.json()["metadata"] == made.json()["metadata"]
        moved = client.put(f"{CLAIMS}/c", json=made.json() | {"metadata": self.labelled(made)})
        assert moved.status_code == 200, moved.text
        stale = client.put(f"{CLAIMS}/c", json=made.json() | {"metadata": self.labelled(made)})
        assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")

    @staticmethod
    def labelled(made):
        return made.json()["metadata"] | {"labels": {"a": "b"}}

    def test_watch_with_its_own_accept_header_goes_on_until_it_is_left(self, client):
        client.post(CONFIG_MAPS, json={"metadata": {"name": "w"}})
        parameters = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "3"}
        with client.stream("GET", CONFIG_MAPS, params=parameters, headers=WATCH) as answer:
            # The namespace has a ConfigMap of its own, which may come first.
            found = (line.replace(" ", "") for line in answer.iter_lines())
            assert any('"name":"w"' in line for line in found)
