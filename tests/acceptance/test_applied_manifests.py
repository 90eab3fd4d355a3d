"""Exported manifests, applied by their script and the real kubectl to a new server.

Incidents come by day: each goes the same way.
"""

import json
import re
import shlex
import subprocess
import time
import zipfile

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


@draws.BY_DAY
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
    expected = placed_at_the_end(source)
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
            if placed(listed) == expected or time.monotonic() > deadline:
                break
            time.sleep(0.2)  # waits: for controllers, which nobody asks to say that they are done
        assert placed(listed) == expected
