"""Odd values of all options of all commands: refused in a line, and nothing is left behind."""

from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from tests.acceptance.test_moments_of_commands import commands, required
from tests.command_line import redra

OPTIONS = [
    (front, command, option)
    for front, command in commands()
    for option in command.params
    if option.param_type_name == "option" and not option.is_flag
]
IDS = [f"{' '.join(front)} {option.opts[0]}" for front, _, option in OPTIONS]


@pytest.mark.parametrize(("front", "command", "option"), OPTIONS, ids=IDS)
def test_empty_value_is_refused_as_a_variable_that_is_not_set(
    tmp_path: Path, front: tuple[str, ...], command: object, option: object
) -> None:
    for name in option.opts:
        code, out, error = redra(
            *front, *required(command), name, "", folder=tmp_path, REDRA_DATA=str(tmp_path / "data")
        )
        assert (code, out) == (ExitCode.UNUSABLE, "")
        assert error == (
            f"redra: {'/'.join(option.opts)}: it is empty, as if a variable were not set; "
            "write it, or leave it out\n"
        )
    assert not [*tmp_path.iterdir()]
