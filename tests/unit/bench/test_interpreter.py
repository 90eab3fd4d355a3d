"""Which Python `make install` takes: the usual one, unless another is clearly faster."""

from pathlib import Path

import pytest

from bench import interpreter


@pytest.mark.parametrize(
    ("times", "chosen"),
    [
        pytest.param(("0.010",), "python-0", id="there is only one"),
        pytest.param(("0.010", "0.0095"), "python-0", id="another is hardly faster"),
        pytest.param(("0.010", "0.008"), "python-1", id="another is clearly faster"),
        pytest.param(("0.010", "0.008", "0.007"), "python-2", id="the fastest of three"),
        pytest.param(("", "0.008"), "python-1", id="the usual one is too old"),
        pytest.param(("0.010", "", "no number"), "python-0", id="no other can be used"),
        pytest.param(("", ""), "python-0", id="none can be used: the usual one says why"),
    ],
)
def test_the_usual_python_is_taken_unless_another_is_clearly_faster(
    tmp_path: Path, times: tuple[str, ...], chosen: str
) -> None:
    paths = []
    for number, seconds in enumerate(times):
        path = tmp_path / f"python-{number}"
        path.write_text(f"#!/bin/sh\necho {seconds}\n" if seconds else "#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
        paths.append(str(path))
    assert Path(interpreter.fastest(paths)).name == chosen


def test_another_name_of_the_usual_python_is_not_tried(tmp_path: Path) -> None:
    usual, other = tmp_path / "python3", tmp_path / "python3.11"
    usual.write_text("#!/bin/sh\necho 0.01\n")
    usual.chmod(0o755)
    other.symlink_to(usual)
    assert interpreter.fastest([str(usual), str(other)]) == str(usual)
