"""Settings are read from the environment and the command line, and a bad one is named."""

from pathlib import Path

import pytest

from app.analysis.explain.pods import ExplainBounds
from app.bootstrap.answers import bounds
from app.domain.errors import InputError
from app.settings import Settings, read


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("BATCH_MAX", "7", 7),
        ("POLL_SECONDS", "0.25", 0.25),
        ("TLS", "true", True),
        ("TLS", "1", True),
        ("TLS", "On", True),
        ("TLS", "no", False),
        ("PROJECTOR", "task", "task"),
        ("AUTHORIZATION", "", ""),
        ("DATA", "/var/lib/redra", Path("/var/lib/redra")),
        ("TOKENS_FILE", "tokens.csv", Path("tokens.csv")),
        ("TOKENS_FILE", "", None),
        ("PROFILE", "1.36", "1.36"),
    ],
)
def test_setting_is_read_as_what_it_holds(variable: str, text: str, value: object) -> None:
    read_value = getattr(read({}, environment={f"REDRA_{variable}": text}), variable.lower())
    assert (read_value, type(read_value)) == (value, type(value))


@pytest.mark.parametrize(
    ("variable", "text", "rule"),
    [
        ("BATCH_MAX", "0", "1 or more"),
        ("BATCH_MAX", "many", "a whole number"),
        ("BATCH_MAX", "1.5", "a whole number"),
        ("BATCH_MAX", "", "a whole number"),
        ("POLL_SECONDS", "0", "more than 0"),
        ("POLL_SECONDS", "nan", "more than 0"),
        ("POLL_SECONDS", "soon", "a number"),
        # A page that is not kept would be made again for each request, and never be there.
        ("PAGES_KEPT_MAX", "0", "1 or more"),
        ("PAGE_KEPT_SECONDS", "0", "1 or more"),
        ("VERIFY_PROCESSES", "65", "64 or less"),
        ("TLS", "maybe", "`true` or `false`"),
        ("DATA", "", "the name of a folder or file, not empty"),
        ("PROJECTOR", "thread", "one of `process`, `task`, `off`"),
    ],
)
def test_bad_value_is_refused_by_its_variable(variable: str, text: str, rule: str) -> None:
    with pytest.raises(InputError) as refused:
        read({}, environment={f"REDRA_{variable}": text})
    assert str(refused.value).startswith(f"REDRA_{variable}: the value must be {rule}")


def test_command_line_wins_over_the_environment_and_has_the_same_bounds() -> None:
    environment = {"REDRA_VERIFY_PROCESSES": "3", "REDRA_PROFILE": "1.35", "OTHER": "x"}
    assert read({"verify_processes": 2}, environment=environment).verify_processes == 2
    with pytest.raises(InputError, match="REDRA_VERIFY_PROCESSES"):
        read({"verify_processes": 65}, environment=environment)
    with pytest.raises(InputError, match="REDRA_AUTHORIZATION"):
        read({"authorization": "closed"}, environment=environment)


def test_settings_know_which_of_them_were_given() -> None:
    settings = read({"data": Path("elsewhere")}, environment={"REDRA_PROFILE": "1.37"})
    assert settings.given == {"profile", "data"}
    assert read({}, environment={}) == Settings()


def test_process_with_the_environment_of_settings_has_these_settings() -> None:
    chosen = {"REDRA_TLS": "yes", "REDRA_DATA": "d", "REDRA_POLL_SECONDS": "0.5"}
    settings = read({"policy_file": Path("rules.yaml")}, environment=chosen)
    other = read({}, environment=settings.environment(database_url="postgresql://x/y"))
    assert other.database_url == "postgresql://x/y"
    assert [
        name
        for name in Settings.defaults()
        if getattr(other, name) != getattr(settings, name) and name != "database_url"
    ] == []


def test_bounds_of_a_question_are_those_of_the_settings() -> None:
    assert bounds.explain_bounds(Settings()) == ExplainBounds()
    names = [name for name in Settings.defaults() if name.startswith(("cause_", "refusal_"))]
    assert len(names) == 9
    turned = bounds.explain_bounds(Settings(**dict.fromkeys(names, 3)))
    assert {name: getattr(turned, name) for name in names} == dict.fromkeys(names, 3)
