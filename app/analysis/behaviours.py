"""The numbered behaviours of upstream, with their state in a history and in the releases."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from app.analysis import profiles
from app.domain.controllers import registry
from app.domain.objects import profile
from app.domain.values.json_tree import JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """A behaviour of upstream with its number, such as `Q1`, and its description.

    `releases` are the profiles that have it by default. `is_on` is its state in the history; None
    for a behaviour without a switch.
    """

    number: str
    text: str
    releases: tuple[str, ...]
    is_on: bool | None


def behaviours(settings: JsonView) -> list[Behaviour]:
    """All behaviours, for a history with these settings, in the order of their numbers."""
    having = {name: profiles.facts_of(name).quirks for name in profiles.names()}
    states = _states(settings)
    rows = [
        Behaviour(
            number=number.upper(),
            text=text,
            releases=tuple(name for name, quirks in having.items() if quirks.get(number)),
            is_on=states.get(number),
        )
        for number, text in {**profiles.WORDS, **profiles.WITHOUT_SWITCH}.items()
    ]
    return sorted(rows, key=lambda row: (row.number[0], int(row.number[1:])))


def _states(settings: JsonView) -> Mapping[str, bool]:
    chosen, options = profile.from_settings(settings), registry.options_from(settings)
    switches = (
        registry.quirks_of(chosen, options),
        registry.allocator_quirks_of(chosen, options),
    )
    return {each.name: bool(getattr(one, each.name)) for one in switches for each in fields(one)}
