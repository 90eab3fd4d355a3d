"""Every module of the bench that measures is a name of `python -m bench`."""

from pathlib import Path

import pytest

from bench import __main__ as bench

FOLDER = Path(bench.__file__).parent


def test_every_measurement_has_a_name() -> None:
    runs = {path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text("utf-8")}
    assert runs - {"__main__"} == {*bench.MEASUREMENTS, *bench.ALONE}


@pytest.mark.parametrize("name", bench.ALONE)
def test_measurement_of_its_own_takes_its_options(name, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        bench.main([name, "--help"])
    assert end.value.code == 0
    assert f"bench.{name}" in capsys.readouterr().out
