"""The settings of a new history, made from those of the process."""

from app.domain.controllers import registry
from app.domain.controllers.registry import TERMINATED_MAX
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.errors import InputError
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND
from app.service.history_creation import check_name
from app.settings import Settings


def history_settings(chosen: Settings) -> JsonObject:
    """The settings of a new history: profile, gates and quirks. Raises InputError for unknown ones.

    `DRADeviceTaintRules=true` switches a gate, `c8=on` or `q3=off` a quirk.
    """
    profile = Profile(version=chosen.profile, gates=switches(chosen.gates, place="--gate"))
    chosen_settings = profile.settings()
    quirks = switches(chosen.quirks.lower(), place="--quirk")
    if quirks:
        chosen_settings["quirks"] = quirks
        registry.options_from(chosen_settings)
    controllers: JsonObject = {}
    if off := [name.strip() for name in chosen.controllers_off.split(",") if name.strip()]:
        controllers["off"] = sorted(set(off))
    if chosen.bind_delay_millis:
        controllers["bindDelayMillis"] = chosen.bind_delay_millis
    if chosen.binding_timeout_seconds != binding_conditions.TIMEOUT // SECOND:
        controllers["bindingTimeoutSeconds"] = chosen.binding_timeout_seconds
    if chosen.event_ttl_seconds:
        controllers["eventTtlSeconds"] = chosen.event_ttl_seconds
    if chosen.terminated_pods_max != TERMINATED_MAX:
        controllers["terminatedPodsMax"] = chosen.terminated_pods_max
    if controllers:
        chosen_settings["controllers"] = controllers
        registry.options_from(chosen_settings)
    return chosen_settings


def check_new(name: str, chosen: Settings) -> None:
    """Raises InputError for a name or settings that no history can have.

    A command that makes a data folder when there is none checks this before.
    """
    check_name(name)
    history_settings(chosen)


_STATES = {"true": True, "on": True, "false": False, "off": False}


def switches(text: str, *, place: str) -> dict[str, bool]:
    """Names with `true`, `on`, `false` or `off`, separated by commas. Raises InputError."""
    states: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, state = part.partition("=")
        if not name or state.lower() not in _STATES:
            raise InputError(
                f"{part!r} is not NAME=true, NAME=false, NAME=on or NAME=off", place=place
            )
        is_on = _STATES[state.lower()]
        if states.setdefault(name.strip(), is_on) is not is_on:
            raise InputError(
                f"{name.strip()} is switched both on and off", place=place, cure="name it once"
            )
    return states
