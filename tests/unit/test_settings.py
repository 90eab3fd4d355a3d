"""Settings are read from the environment and the command line, and a bad one is named."""

from pathlib import Path

import pytest

from app.analysis.explain.pods import ExplainBounds
from app.bootstrap import process_settings
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
    assert len(names) == 11
    turned = bounds.explain_bounds(Settings(**dict.fromkeys(names, 3)))
    assert {name: getattr(turned, name) for name in names} == dict.fromkeys(names, 3)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("REDRA_PROFIL", "REDRA_PROFILE"),
        ("REDRA_PROFLIE", "REDRA_PROFILE"),
        ("REDRA_QUIRK", "REDRA_QUIRKS"),
        ("REDRA_GATE", "REDRA_GATES"),
        ("REDRA_CONTROLERS_OFF", "REDRA_CONTROLLERS_OFF"),
        ("REDRA_EVENTS_TTL_SECONDS", "REDRA_EVENT_TTL_SECONDS"),
        ("redra_profile", "REDRA_PROFILE"),
        ("Redra_Quirk", "REDRA_QUIRKS"),
    ],
)
def test_variable_with_nearly_the_name_of_a_setting_is_misspelt(variable: str, meant: str) -> None:
    settings = read({}, environment={variable: "1.36", "HOME": "/"})
    assert settings.misspelt == ((variable, meant),)
    assert (settings.profile, settings.quirks) == (Settings().profile, Settings().quirks)


def variables_of_a_service(name: str, port: str, protocol: str) -> list[str]:
    """The variables that a kubelet gives to containers for a Service of this name."""
    ends = ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP_API", "PORT")
    number = f"PORT_{port}_{protocol}"
    of_port = (number, f"{number}_PROTO", f"{number}_PORT", f"{number}_ADDR")
    return [f"{name.upper().replace('-', '_')}_{end}" for end in (*ends, *of_port)]


@pytest.mark.parametrize("protocol", ["TCP", "UDP", "SCTP"])
def test_variable_of_a_service_is_never_misspelt(protocol: str) -> None:
    """Also when the Service has the name of a setting, or nearly."""
    names = [name.replace("_", "-") for name in Settings.defaults()]
    services = ("redra", *(f"redra-{name[:end]}" for name in names for end in (None, -1)))
    variables = [
        variable
        for service in services
        for variable in variables_of_a_service(service.rstrip("-"), "8080", protocol)
    ]
    assert "REDRA_PROFIL_PORT" in variables
    environment = dict.fromkeys(variables, "tcp://10.96.0.7:8080")
    assert read({}, environment=environment).misspelt == ()


def test_no_setting_is_taken_for_another_misspelt_and_other_names_are_left_alone() -> None:
    defaults = Settings.defaults()
    own = {f"REDRA_{name.upper()}": str(defaults[name]) for name in ("profile", "gates", "quirks")}
    others = dict.fromkeys(("REDRA_PAGER", "REDRA_DRAWS", "REDRA", "REDRA_", "INFRA_PROFIL"), "x")
    assert read({}, environment={**own, **others}).misspelt == ()


def test_commands_warn_once_of_a_misspelt_variable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REDRA_PROFIL_", "1.36")
    monkeypatch.setenv("REDRA_SERVICE_HOST", "10.96.0.7")
    for _ in range(2):
        chosen = process_settings.settings()
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings == ["REDRA_PROFIL_ has no effect: do you mean REDRA_PROFILE?"]
    child = chosen.environment()
    assert "REDRA_PROFIL_" not in child, "another process would warn again"
    assert child["REDRA_SERVICE_HOST"] == "10.96.0.7"
