"""The files from which redra is delivered name programs, packages and files that are there.

What the image does is shown as root alone (`tests/acceptance/test_image.py`); this is read.
"""

import fnmatch
import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
IGNORED = (ROOT / ".dockerignore").read_text().split()


def said(instruction):
    """What the image file says in the instructions of a name."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{instruction}\s+(.*)$", text, re.MULTILINE)


def is_copied(path):
    return not any(
        fnmatch.fnmatch(path, pattern) or path.startswith(f"{pattern}/") for pattern in IGNORED
    )


def test_image_has_what_an_installation_needs():
    assert said("COPY") == [". ."]
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = ["pyproject.toml", "uv.lock", PROJECT["project"]["readme"]]
    needed += [*PROJECT["project"]["license-files"], *wheel["packages"], *wheel["force-include"]]
    for path in needed:
        assert (ROOT / path).exists(), path
        assert is_copied(path), path
    for path in (".git", ".venv/bin/python", "app/cli/__pycache__", ".redra/pki"):
        assert not is_copied(path), path


def test_image_compiles_all_that_it_loads():
    """Its user can write nothing there: each start would compile what is not."""
    install = next(line for line in said("RUN") if "uv sync" in line)
    assert "--frozen" in install
    assert "--compile-bytecode" in install
    compiled = re.search(r"compileall -q (.*)$", install)[1].split()
    assert compiled == PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert said("USER") != ["root"]


def test_commands_of_the_image_are_there():
    program, *_ = json.loads(said("CMD")[-1])
    assert program in PROJECT["project"]["scripts"]
    (folder,) = said("WORKDIR")
    assert f'PATH="{folder}/.venv/bin:$PATH"' in " ".join(said("ENV"))
    (release,) = re.findall(r"python:(\d+\.\d+)", said("FROM")[0])
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert tuple(map(int, release.split("."))) >= tuple(map(int, lowest.split(".")))
