"""Exported manifests, applied by their script and the real kubectl to a new server.

Incidents come by day: each goes the same way.
"""

import json
import re
import shlex
import subprocess
import time
import zipfile
from itertools import chain

import pytest

from app.analysis.incidents.incident import IncidentVariant
from tests import draws
from tests.acceptance.kubectl_cluster import BIN, cluster
from tests.acceptance.test_repaired_exports import bundle
from tests.command_line import redra
from tests.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.database, pytest.mark.slow]

VARIABLES = {
    "--profile": "REDRA_PROFILE",
    "--gate": "REDRA_GATES",
    "--quirk": "REDRA_QUIRKS",
    "--without": "REDRA_CONTROLLERS_OFF",
}


def placed(trees):
    """Where pods are, and which devices claims have."""
    places = {}
    for tree in trees:
        allocation = tree.get("status", {}).get("allocation", {})
        results = allocation.get("devices", {}).get("results", [])
        devices = [(each["driver"], each["pool"], each["device"]) for each in results]
        key = (tree["kind"], tree["metadata"]["namespace"], tree["metadata"]["name"])
        places[key] = (tree["spec"].get("nodeName"), devices)
    return places


def placed_at_the_end(bundle_path):
    """The same of a bundle, read from its lines."""
    with zipfile.ZipFile(bundle_path) as archive:
        lines = archive.read("events.jsonl").splitlines()
    trees = {}
    for line in lines:
        event = json.loads(line)
        tree = event["payload"]["object"]
        if tree.get("kind") in ("Pod", "ResourceClaim"):
            key = (tree["kind"], tree["metadata"]["namespace"], tree["metadata"]["name"])
            trees.pop(key, None)
            if event["type"] != "ObjectDeleted":
                trees[key] = tree
    return placed(trees.values())


def settings_of(script):
    """The variables of the server that a script names."""
    (command,) = re.findall(r"^# Decided so by: redra up(.*)$", script, re.MULTILINE)
    words = shlex.split(command)
    values = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        values.setdefault(VARIABLES[option], []).append(value)
    return {name: ",".join(each) for name, each in values.items()}


@draws.in_turn("ways")
@pytest.mark.parametrize(
    "name",
    [
        "alternatives-are-not-scored",  # by 1.34: a later release decides otherwise
        "claim-named-twice",
        "device-in-two-claims",
        "share-without-capacity",
        "tolerations-not-copied",
    ],
)
def test_server_decides_the_applied_manifests_as_the_history_was(name, tmp_path):
    source, made = bundle(name, IncidentVariant.BROKEN, tmp_path / "b.zip"), tmp_path / "made"
    code, _, error = redra("export", source, "--as", "manifests", "-o", made)
    assert code == 0, error
    check_applied(made, placed_at_the_end(source), tmp_path)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", ["claim-named-twice", "device-in-two-claims"])
def test_server_decides_the_manifests_without_names_as_the_history_was(name, tmp_path):
    """The new names sort as the old ones, so each object has the place of the one before it."""
    source = bundle(name, IncidentVariant.BROKEN, tmp_path / "b.zip")
    made, plain = tmp_path / "made", tmp_path / "plain"
    for folder, words in ((made, ("--redact",)), (plain, ())):
        code, _, error = redra("export", source, "--as", "manifests", *words, "-o", folder)
        assert code == 0, error
    expected = placed_at_the_end(source)
    devices = [device for _, results in expected.values() for _, *device in results]
    names = set(chain(*devices, (name for _, _, name in expected)))
    assert names <= words_of(plain)
    assert names.isdisjoint(words_of(made))
    check_applied(made, expected, tmp_path, read=ranked)


def words_of(folder):
    """The words of all manifests in a folder."""
    texts = (path.read_text() for path in folder.glob("*.yaml"))
    return {word.strip("\"',") for text in texts for word in text.split()}


def ranked(places):
    """The places with each name as its rank among the names of its sort."""
    nodes = sorted({node for node, _ in places.values() if node})
    devices = sorted({device for _, results in places.values() for device in results})
    return [
        (key[0], node and nodes.index(node), [devices.index(each) for each in results])
        for key, (node, results) in sorted(places.items())
    ]


def check_applied(made, expected, tmp_path, *, read=dict):
    """Apply the manifests of a folder to a new server, which comes to the expected places."""
    assert expected
    with cluster(tmp_path, **settings_of((made / "run.sh").read_text())) as server:
        program = shlex.join([str(BIN / "kubectl"), "--cache-dir", str(tmp_path / "cache")])
        environment = server.environment() | {"KUBECTL": program, "WAIT": "no"}
        script = subprocess.run(
            ["sh", made / "run.sh"], env=environment, capture_output=True, check=False, text=True
        )
        assert script.returncode == 0, script.stderr
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            listed = server.json("get", "pods,resourceclaims", "--all-namespaces")["items"]
            if read(placed(listed)) == read(expected) or time.monotonic() > deadline:
                break
            time.sleep(0.2)  # waits: for controllers, which nobody asks to say that they are done
        assert read(placed(listed)) == read(expected)
