"""Gates and quirks are chosen by name."""

from pathlib import Path

import pytest

from app.analysis.views import compiler_of, features_of
from app.bootstrap import history_settings, process_settings
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile


def test_gates_and_quirks_become_settings_of_a_history():
    chosen = process_settings.settings(
        profile="1.36", gates=["DRADeviceTaintRules=true"], quirks=["C8=on", "q3=off"]
    )
    assert history_settings.history_settings(chosen) == {
        "profile": "1.36",
        "gates": {"DRADeviceTaintRules": True},
        "quirks": {"c8": True, "q3": False},
        "controllers": {"eventTtlSeconds": 3_600},
    }


@pytest.mark.parametrize(
    ("gates", "quirks"), [(["DRAUnheardOf=true"], []), (["DRAAdminAccess"], []), ([], ["c99=on"])]
)
def test_unknown_switch_is_refused_by_name(gates, quirks):
    with pytest.raises(InputError):
        history_settings.history_settings(process_settings.settings(gates=gates, quirks=quirks))


def test_released_1_36_2_schedules_without_looking_at_rules():
    gates = {"DRADeviceTaintRules": True}
    released = Profile(version="1.36.2", gates=gates)
    assert (released.version, released.settings()["profile"]) == ("1.36", "1.36.2")
    assert released.enabled("DRADeviceTaintRules")
    assert not features_of(released).taint_rules
    assert features_of(Profile(version="1.36", gates=gates)).taint_rules


def test_quirk_c24_is_the_same_as_the_release_that_has_it():
    settings = {"profile": "1.36", "gates": {}, "quirks": {"c24": True}}
    assert profiles.from_settings(settings).ignores_rules
    settings = {"profile": "1.36.2", "gates": {}, "quirks": {"c24": False}}
    assert not profiles.from_settings(settings).ignores_rules


def test_config_clean_up_and_long_error_texts_came_with_1_37():
    old, new = Profile(version="1.36"), Profile(version="1.37")
    assert not features_of(old).cleaned_configs
    assert features_of(new).cleaned_configs
    assert compiler_of(old) is not compiler_of(new)


@pytest.mark.parametrize("name", profiles.FIXED)
def test_gate_that_nothing_reads_keeps_its_default(name):
    default = Profile().enabled(name)
    assert Profile(gates={name: default}).enabled(name) is default
    with pytest.raises(InputError, match=f"{name} cannot be switched {'off' if default else 'on'}"):
        history_settings.history_settings(
            process_settings.settings(gates=[f"{name}={str(not default).lower()}"])
        )
    # A history from before it was refused can still be opened.
    stored = {"profile": "1.37", "gates": {name: not default, "DRAAdminAccess": False}}
    assert profiles.from_settings(stored) == Profile(gates={"DRAAdminAccess": False})


def test_gates_are_read_somewhere_or_fixed():
    root = Path(profiles.__file__).parents[3]
    read = "".join(
        path.read_text(encoding="utf-8")
        for path in (root / "app").rglob("*.py")
        if path != Path(profiles.__file__)
    )
    unread = {name for name in profiles.GATES if f'"{name}"' not in read}
    assert unread - {"GenericWorkload"} == profiles.FIXED.keys() - {"GenericWorkload"}


def test_controllers_that_do_not_run_are_a_setting(monkeypatch):
    monkeypatch.setenv("REDRA_CONTROLLERS_OFF", "kubelet, jobs")
    found = history_settings.history_settings(process_settings.settings())
    assert found["controllers"]["off"] == ["jobs", "kubelet"]
    assert registry.options_from(found).off == {"jobs", "kubelet"}
    monkeypatch.setenv("REDRA_CONTROLLERS_OFF", "scheduler")
    with pytest.raises(InputError, match="there is no controller 'scheduler'"):
        history_settings.history_settings(process_settings.settings())
