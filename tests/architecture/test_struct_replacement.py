"""The check of types refuses `dataclasses.replace` of structs, which fails when it runs."""

from pathlib import Path

import msgspec
import pytest
from mypy import api

from tests import draws
from tests.architecture.struct_replacement import REFUSED

ROOT = Path(__file__).resolve().parent.parent.parent

CODE = """
import dataclasses
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec


class Point(msgspec.Struct):
    x: int = 0


class Place(Point):
    pass


@dataclass
class Plain:
    x: int = 0


AnyPlace = TypeVar("AnyPlace", bound=Place)


def change(point: Point, plain: Plain, either: Plain | Place, any_place: AnyPlace) -> None:
    replace(plain, x=1)
    dataclasses.replace(plain, x=1)
    msgspec.structs.replace(point, x=1)
    replace(point, x=1)  # refused
    dataclasses.replace(Place(), x=1)  # refused
    replace(either, x=1)  # refused
    replace(any_place, x=1)  # refused
"""


@draws.BY_DAY
def test_structs_are_not_given_to_the_replace_of_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    options = ("--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "c"))
    said, _, _ = api.run([*options, str(tmp_path / "code.py")])
    wrong = [number for number, line in enumerate(CODE.splitlines(), 1) if "# refused" in line]
    lines = [line for line in said.splitlines() if "error:" in line]
    assert [int(line.split(":")[1]) for line in lines] == wrong, said
    assert all(REFUSED in line for line in lines)


def test_replacing_a_struct_so_fails_when_it_runs() -> None:
    """The reason for the check: without it, mypy accepts what Python refuses."""
    scope: dict[str, object] = {}
    exec(CODE, scope)
    point = scope["Point"]
    assert isinstance(point, type)
    assert issubclass(point, msgspec.Struct)
    with pytest.raises(TypeError, match="dataclass instances"):
        scope["replace"](point(), x=1)  # type: ignore[operator]  # the code's own import
