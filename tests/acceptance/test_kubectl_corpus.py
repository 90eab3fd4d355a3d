"""Manifests that other people wrote, with the real kubectl and a real server.

All of them go through the API in `tests/api/test_corpus.py`. Here is every fourth valid one, and
every fourth refused file that kubectl sends at all, with the reason that its author would read;
with more draws, every refused one.
"""

import json
import re

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster
from tests.api.test_corpus import REFUSALS, kind_of, objects
from tests.shared_data import shared_path

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

EVERY = 4
QUIET = ("ResourceClaimTemplate", "DeviceClass", "ResourceSlice", "ConfigMap", "ServiceAccount")
NOT_IN_THE_PLAIN_PROFILE = {"PodGroup", "ResourcePoolStatusRequest", "Workload"}
"""Kinds behind a gate that the server of this test does not open."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = shared_path("corpus")
    with cluster(tmp_path_factory.mktemp("corpus")) as found:
        yield found, folder


def refused_rows():
    rows = [line.split("\t") for line in REFUSALS.read_text().splitlines()]
    return {(path, int(number)): (code, message) for path, number, code, message in rows}


def valid_objects(folder):
    """Valid objects of different names, ready to be applied one after the other."""
    refused, found = refused_rows(), {}
    for path, number, tree in objects(folder):
        metadata = tree.get("metadata") or {}
        if (path, number) in refused or not metadata.get("name"):
            continue
        if tree["kind"] in NOT_IN_THE_PLAIN_PROFILE:
            continue
        for field in ("resourceVersion", "uid", "namespace", "managedFields", "ownerReferences"):
            metadata.pop(field, None)
        found.setdefault((kind_of(tree).plural, metadata["name"]), tree)
    return list(found.values())


def written(trees):
    return "\n---\n".join(
        json.dumps(tree, default=lambda moment: f"{moment.isoformat()}Z") for tree in trees
    )


def test_valid_manifests_are_applied_and_applied_again_without_a_change(server):
    kubectl, folder = server
    chosen = valid_objects(folder)[::EVERY]
    assert len(chosen) > 60
    text = written(chosen)
    made = kubectl.apply(text).out.splitlines()
    assert len(made) == len(chosen)
    assert all(re.search(r" (created|configured)$", line) for line in made), made
    # What controllers may change meanwhile is left out.
    quiet = [tree for tree in chosen if tree["kind"] in QUIET]
    names = [f"{kind_of(tree).qualified_plural}/{tree['metadata']['name']}" for tree in quiet]
    versions = ("get", *names, "-o", "jsonpath={.items[*].metadata.resourceVersion}")
    before = kubectl.kubectl(*versions).out
    kubectl.apply(written(quiet))
    assert kubectl.kubectl(*versions).out == before


def test_refused_manifests_tell_their_authors_why(server):
    kubectl, folder = server
    rows = refused_rows()
    sent = [
        (path, number, tree)
        for path, number, tree in objects(folder)
        if (path, number) in rows and tree["kind"] not in NOT_IN_THE_PLAIN_PROFILE
    ]
    assert len(sent) > 40
    for path, number, tree in draws.part(sent, EVERY):
        metadata = tree.get("metadata") or {}
        for field in ("resourceVersion", "uid", "namespace", "managedFields"):
            metadata.pop(field, None)
        _, message = rows[path, number]
        reason = message.partition(" is invalid: ")[2] or message
        said = kubectl.create(written([tree]), code=1).err
        # kubectl lists causes as bullets; the first words of the first one are enough.
        wanted = reason.lstrip("[")[:50].partition(": Invalid value")[0].strip()
        assert wanted in said, (path, number, wanted, said)
