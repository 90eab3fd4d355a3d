"""`redra fit` and `redra capacity` as a person at a terminal meets them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import draws
from tests.command_line import EXAMPLES, database_running, redra

pytestmark = [pytest.mark.slow]

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: wanted}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: %s, count: 2}}]}}
"""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose database runs."""
    with database_running(tmp_path / "data"):
        yield tmp_path / "data"


@draws.in_turn(
    "ways",
    each_day="api/test_redra_capacity.py::"
    "test_classes_templates_and_documents_are_counted_and_nothing_is_written",
)
def test_copies_are_counted_refused_with_their_place_and_never_written(
    data: Path, tmp_path: Path
) -> None:
    code, _, error = redra("import", EXAMPLES, "--history", "examples", data=data)
    assert code == 0, error
    about = ("--history", "examples")
    code, out, error = redra("fit", *about, "-o", "json", data=data)
    assert code == 0, error
    every = json.loads(out)
    assert redra("fit", "examples", "-o", "json", data=data) == (0, out, "")
    code, out, error = redra("fit", "examples", "--history", "others", data=data)
    assert (code, out) == (2, "")
    assert "the history is named twice, 'examples' and 'others'" in error
    name = next(
        one["subject"].removeprefix("DeviceClass ")
        for one in every["items"]
        if one["subject"].startswith("DeviceClass ") and one["count"]
    )
    file = tmp_path / "claim.yaml"
    file.write_text("# a comment\n---\n" + CLAIM % name)
    code, out, error = redra("fit", "-f", file, *about, data=data)
    assert code == 0, error
    assert out.startswith(f"as of revision {every['revision']}, ")
    assert "ResourceClaim default/wanted: " in out
    code, of_class, _ = redra("fit", "--class", name, "--count", 2, *about, "-o", "json", data=data)
    code, of_file, _ = redra("fit", "-f", file, *about, "-o", "json", data=data)
    (left,), (right,) = json.loads(of_class)["items"], json.loads(of_file)["items"]
    assert (left["count"], left["nodes"]) == (right["count"], right["nodes"])
    file.write_text("# a comment\n---\n" + (CLAIM % name).replace("count: 2", "count: none"))
    code, _, error = redra("fit", "-f", file, *about, data=data)
    assert code == 2
    assert f"{file}:2: " in error
    # As many steps as a text needs: what is largest is judged elsewhere (tests/unit/analysis).
    few = {"REDRA_CAPACITY_STEPS_MAX": "200"}
    code, out, error = redra("capacity", "examples", "-o", "json", data=data, **few)
    assert code == 0, error
    assert json.loads(out)["revision"] == every["revision"]
    assert not json.loads(out)["missing"]
    # The text is about few devices: what fits is searched for at every moment.
    files = [EXAMPLES / f"{part}.yaml" for part in ("01-nodes", "02-classes", "04-tpu-slices")]
    code, _, error = redra("import", *files, "--history", "small", data=data)
    assert code == 0, error
    code, out, error = redra("capacity", "small", data=data)
    assert code == 0, error
    assert "class tpu: " in out


def test_what_cannot_be_combined_ends_with_2(tmp_path: Path) -> None:
    code, _, error = redra("fit", "--class", "a", "--template", "b", data=tmp_path)
    assert code == 2
    assert "cannot be combined" in error
    code, _, error = redra("fit", "--count", 2, data=tmp_path)
    assert code == 2
    assert "--count needs --class" in error
