"""The JavaScript client `@kubernetes/client-node`, as published, against a server process."""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests import draws
from tests.acceptance.server_process import server_process
from tests.shared_data import REPOSITORY

PACKAGE = "@kubernetes/client-node@1.4.0"
INSTALLED = REPOSITORY / ".cache" / "node" / PACKAGE.replace("/", "-")
SCRIPT = Path(__file__).with_name("client_node.mjs")
MISSING = shutil.which("node") is None or shutil.which("npm") is None

pytestmark = [
    draws.modules_in_turn("clients"),
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.skipif(MISSING, reason="node and npm are no part of the project's environment"),
]


@pytest.fixture(scope="module")
def modules():
    """A folder with the client in it, from the registry that npm is set up for.

    It stays for later runs of the tests: npm takes four CPU seconds. `make clean` removes it.
    """
    if not INSTALLED.exists():
        INSTALLED.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=INSTALLED.parent))
        install(folder)
        # Another run may have been faster.
        with suppress(OSError):
            folder.rename(INSTALLED)
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copy(SCRIPT, INSTALLED)
    return INSTALLED


def install(folder):
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    done = subprocess.run(
        ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE],
        cwd=folder, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(folder)
        if not os.environ.get("CI"):
            pytest.skip(f"npm cannot install {PACKAGE} here: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def said(modules, tmp_path_factory):
    """What the client saw."""
    with server_process(tmp_path_factory.mktemp("client"), "js") as server:
        done = subprocess.run(
            ["node", SCRIPT.name, str(server.kubeconfig), "js"],
            cwd=modules, capture_output=True, text=True, timeout=90,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_informer_sees_each_state_of_an_object_in_its_order(said):
    seen = [(kind, data.get("step")) for kind, name, data in said["informer"] if name == "a"]
    assert seen == [
        ("add", "made"),
        ("update", "merged"),
        ("update", "replaced"),
        ("update", "strategic"),
        ("delete", "strategic"),
    ]


def test_each_kind_of_patch_is_applied(said):
    assert said["patches"] == ["merged", "replaced", "strategic"]


def test_watch_from_a_version_sees_what_came_after_it(said):
    assert said["watch"] == [["DELETED", "a"]]


def test_object_of_any_kind_is_applied_and_not_made_twice(said):
    assert said["claim"] == ["c", "Apply"]
    assert said["conflict"] == [409, "AlreadyExists"]
