"""The image does its work as it is described: its command runs as its user in a file system that
can be written to in its data folder alone, its health check tells when it serves, and a job reaches
it by the kubeconfig that it gives.

No container is made: commands, user and paths are those of the file, in a mount namespace.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import BIN
from tests.command_line import ROOT

PATIENCE_SECONDS = 90
TOOLS = all(shutil.which(name) for name in ("unshare", "setpriv", "chroot", "mount"))

pytestmark = [
    draws.modules_in_turn("deliveries"),
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        os.geteuid() != 0 or not TOOLS, reason="a mount namespace is made by root alone"
    ),
]

READ_ONLY = """
set -e
mount --bind / /mnt
mount --bind /proc /mnt/proc
mount --bind /dev /mnt/dev
mount -o remount,ro,bind /mnt
mount -t tmpfs tmpfs /mnt/tmp
mkdir -p "/mnt$DATA"
mount --bind "$DATA" "/mnt$DATA"
if [ -n "$HIDDEN" ]; then
  mount -t tmpfs -o mode=755 tmpfs "/mnt$HIDDEN"
  mkdir -p "/mnt$PYTHON"
  mount --bind "$PYTHON" "/mnt$PYTHON"
fi
if [ ! -d "/mnt$FOLDER" ]; then  # the checkout lies below what is hidden
  mkdir -p "/mnt$FOLDER"
  mount --bind "$FOLDER" "/mnt$FOLDER"
  mount -o remount,ro,bind "/mnt$FOLDER"
fi
if [ -n "$HIDDEN" ]; then mount -o remount,ro "/mnt$HIDDEN"; fi
exec chroot /mnt setpriv --reuid="$NAME" --regid=65534 --clear-groups --no-new-privs \
  env -i PATH="$PATH" REDRA_DATA="$DATA" sh -c 'cd "$0" && exec "$@"' "$FOLDER" "$@"
"""


def instructions():
    """The instructions of the file and what each says, in their order."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def instruction(name):
    return [said for each, said in instructions() if each == name][-1]


def words(said):
    """The command at the end of an instruction, which is written as a list."""
    return json.loads(said[said.index("[") :])


@pytest.fixture(scope="module")
def container():
    """What runs a command of the image with another port and data folder, below /tmp not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = Path(f"/var/lib/redra-test-{port}")
    home = Path(sys.base_prefix).resolve()
    hidden = next((path for path in (Path("/root"), Path("/home")) if path in home.parents), "")
    environment = {
        "DATA": str(data),
        "PYTHON": str(home),
        "HIDDEN": str(hidden),
        "NAME": instruction("USER"),
        "FOLDER": str(ROOT),
        "PATH": f"{BIN}:/usr/bin:/bin:/usr/sbin:/sbin",
    }
    data.mkdir(mode=0o700)
    shutil.chown(data, instruction("USER"))

    def start(command, **options):
        own = [
            word.replace("8443", str(port)).replace("/var/lib/redra", str(data)) for word in command
        ]
        return subprocess.Popen(
            ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", *own],
            env=environment, text=True, **options,
        )  # fmt: skip

    try:
        yield start
    finally:
        shutil.rmtree(data)


def ended(process):
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out


def test_nothing_is_run_as_root():
    assert instruction("USER") not in ("root", "0")
    # The folder of the data is made for the user.
    assert f"-o {instruction('USER')}" in instruction("RUN")
    assert "REDRA_DATA=/var/lib/redra" in instruction("ENV")


def test_image_serves_in_a_read_only_file_system_and_says_when(container, tmp_path):
    check = words(instruction("HEALTHCHECK"))
    log = (tmp_path / "log").open("w")
    assert ended(container(check, stderr=subprocess.DEVNULL))[0] != 0
    server = container(words(instruction("CMD")), stdout=subprocess.PIPE, stderr=log)
    try:
        assert re.search(r"serves at https://127\.0\.0\.1:\d+", server.stdout.readline())
        end = time.monotonic() + PATIENCE_SECONDS
        while ended(container(check, stderr=subprocess.DEVNULL))[0] != 0:
            assert time.monotonic() < end, (tmp_path / "log").read_text()
        code, text = ended(container(["redra", "kubeconfig"], stdout=subprocess.PIPE))
        assert code == 0
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(text)
        got = subprocess.run(
            [str(BIN / "kubectl"), "--kubeconfig", str(kubeconfig), "get", "ns", "-o", "name"],
            capture_output=True, text=True, timeout=60, env={"HOME": str(tmp_path)},
        )  # fmt: skip
        assert "namespace/default" in got.stdout.split(), got.stderr
        code, _ = ended(container(["touch", f"{ROOT}/written"], stderr=subprocess.DEVNULL))
        assert code != 0, "the file system can be written to"
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE_SECONDS)
        log.close()
    assert server.returncode == 0, (tmp_path / "log").read_text()
