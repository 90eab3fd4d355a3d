"""What a server does with the release it is given: new data gets it, old data keeps its own."""

import pytest

from app.bootstrap import process_settings
from app.bootstrap.histories import default_history, open_histories
from app.bootstrap.stores import memory_store
from app.domain.errors import InputError


async def start(store, **given):
    """Start upon the store as `redra up` does; the profile of the default history, or a refusal."""
    settings = process_settings.settings(**given)
    async with open_histories(store, settings) as histories:
        try:
            await default_history(histories, settings)
        except InputError as refusal:
            return refusal
        return (await histories.open("default")).rules.profile.version


async def test_new_history_gets_the_profile_and_keeps_it_when_none_is_given():
    store = memory_store()
    assert await start(store, profile="1.36") == "1.36"
    assert await start(store) == "1.36"
    assert await start(store, profile="1.36") == "1.36"


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"profile": "1.37"}, "--profile"),
        ({"profile": "1.36.2"}, "--profile"),
        ({"gates": ["DRADeviceTaints=false"]}, "--gate"),
        ({"quirks": ["c8=on"]}, "--quirk"),
    ],
)
async def test_what_old_data_does_not_have_is_refused(given, option):
    store = memory_store()
    await start(store, profile="1.36")
    refusal = await start(store, **given)
    assert "'default' imitates 1.36 " in str(refusal)
    assert refusal.place == option
    assert await start(store) == "1.36"


async def test_gates_and_quirks_that_it_has_may_be_given_again():
    store = memory_store()
    given = {"profile": "1.36", "gates": ["DRADeviceTaints=false"], "quirks": ["c8=on"]}
    await start(store, **given)
    assert await start(store, **given) == "1.36"
    assert await start(store, gates=["DRADeviceTaints=false"]) == "1.36"
    assert await start(store, gates=["DRAAdminAccess=true"], quirks=["c8=on"]) == "1.36"


async def test_environment_that_asks_for_another_release_is_refused(monkeypatch):
    store = memory_store()
    await start(store)
    monkeypatch.setenv("REDRA_PROFILE", "1.35")
    assert "'default' imitates 1.37 " in str(await start(store))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BIND_DELAY_MILLIS", "300"),
        ("BINDING_TIMEOUT_SECONDS", "60"),
        ("CONTROLLERS_OFF", "kubelet,claims"),
        ("EVENT_TTL_SECONDS", "3600"),
        ("GATES", "DRADeviceTaints=false"),
        ("QUIRKS", "c8=on,q3=off"),
        ("TERMINATED_PODS_MAX", "5"),
    ],
)
async def test_server_starts_again_with_each_setting_of_its_history(monkeypatch, name, value):
    """Options that are read twice from the same settings are the same."""
    store = memory_store()
    monkeypatch.setenv(f"REDRA_{name}", value)
    first = await start(store)
    assert await start(store) == first
    monkeypatch.delenv(f"REDRA_{name}")
    assert await start(store) == first
