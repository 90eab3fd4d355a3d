"""A plan: the dimensions that vary, and the resulting cells."""

import difflib
import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import msgspec

from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log.chain import canonical_json
from app.domain.objects import profile as profiles
from app.domain.objects.profile import VERSIONS
from app.domain.values.json_tree import JsonObject

CELLS_MAX = 100_000


class SweepFleet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Emulated hardware as a history: a profile of `redra fleet`, and manifests to apply."""

    name: str
    profile: str
    nodes: int = 1
    seed: int = 1
    apply: list[str] = []


class InputChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change to the initial inputs: objects that never appear, and merge patches of others.

    Objects are named KIND/NAME or KIND/NAMESPACE/NAME, the kind by its plural or as in manifests.
    """

    name: str
    delete: list[str] = []
    patch: dict[str, JsonObject] = {}


class SweepPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Histories or fleets, and the variations of each. The first of each list is the base.

    With a seed other than 0, each pod arrives up to `jitter` seconds earlier or later, so that the
    order of arrival changes, too.
    """

    histories: list[str] = []
    fleets: list[SweepFleet] = []
    profiles: list[str] = msgspec.field(default_factory=lambda: [""])
    gates: list[dict[str, bool]] = msgspec.field(default_factory=lambda: [{}])
    quirks: list[dict[str, bool]] = msgspec.field(default_factory=lambda: [{}])
    changes: list[InputChange] = []
    seeds: Annotated[int, msgspec.Meta(ge=1)] | list[int] = 1
    jitter: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run. `base` is the number of the cell with which it is compared.

    That cell has the same history and seed, and the first of everything else.
    """

    number: int
    base: int
    history: str
    profile: str
    gates: dict[str, bool]
    quirks: dict[str, bool]
    change: InputChange | None
    seed: int
    jitter: float

    def to_json(self) -> JsonObject:
        """The parameters of the run, besides the content of the history."""
        return {
            "history": self.history,
            "profile": self.profile,
            "gates": self.gates,
            "quirks": self.quirks,
            "change": None if self.change is None else msgspec.to_builtins(self.change),
            "seed": self.seed,
            "jitter": self.jitter,
        }

    def digest(self, program: str, history: str) -> str:
        """The key under which its result is stored; `history` is the digest of the bundle."""
        parts = [program, history, {**self.to_json(), "history": ""}]
        return hashlib.sha256(canonical_json(parts)).hexdigest()


def parse(tree: Any, place: str) -> SweepPlan:
    """Reads the plan of a document.

    Raises InputError for unknown keys, empty lists, and profiles, gates and quirks that no release
    knows.
    """
    try:
        plan = msgspec.convert(tree, SweepPlan)
    except msgspec.ValidationError as problem:
        raise _refusal(problem, place) from problem
    if not plan.histories and not plan.fleets:
        raise InputError("it names no histories and no fleets", place=place)
    for name in ("profiles", "gates", "quirks", "seeds"):
        if not getattr(plan, name):
            raise InputError("it is empty", place=f"{place}: {name}", cure="leave it out")
    for name in plan.histories:
        if name.endswith("@"):
            raise InputError(
                f"there is no moment behind the @ of {name!r}",
                place=f"{place}: histories",
                cure="write HISTORY for its end, or HISTORY@MOMENT",
            )
    names = [*plan.histories, *(fleet.name for fleet in plan.fleets)]
    if len(set(names)) < len(names):
        raise InputError("a history or fleet is named twice", place=place)
    # Rows of the table are told apart by the name of their change; the base has none.
    changes = [each.name for each in plan.changes]
    if "" in changes or len(set(changes)) < len(changes):
        why = "a change has an empty name" if "" in changes else "a change is named twice"
        raise InputError(why, place=f"{place}: changes")
    for name, choices in (("gates", plan.gates), ("quirks", plan.quirks)):
        for switches in choices:
            _check(f"{place}: {name}", [{name: switches, "profile": each} for each in VERSIONS])
    for release in plan.profiles:
        _check(f"{place}: profiles", [{"profile": release} if release else {}])
    if not 0 <= plan.jitter < math.inf:
        raise InputError("it must be a number of seconds from 0 on", place=f"{place}: jitter")
    # A number of seeds is counted here: a range of that length may not fit into the memory.
    seeds = plan.seeds if isinstance(plan.seeds, int) else len(plan.seeds)
    of_seed = (names, plan.profiles, plan.gates, plan.quirks, (None, *plan.changes))
    if seeds * math.prod(len(each) for each in of_seed) > CELLS_MAX:
        raise InputError(f"it has more than {CELLS_MAX} cells", place=place)
    return plan


_REFUSAL = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_WRONG = re.compile(r"Expected `(.*?)`( >= \d+)?, got `(.*)`", re.DOTALL)
_LOW = re.compile(r"Expected `int` >= (\d+)", re.DOTALL)
_NOUNS = {
    "array": "a list", "object": "a mapping", "bool": "true or false", "str": "text",
    "int": "a whole number", "float": "a number", "null": "nothing",
}  # fmt: skip


def _refusal(problem: msgspec.ValidationError, place: str) -> InputError:
    """The error for a document that is not a plan, in the terms of plans."""
    whole = _REFUSAL.fullmatch(str(problem))
    assert whole is not None, "anything matches"
    text, path = whole[1], (whole[2] or "").removeprefix(".").replace("[...]", "")
    place = f"{place}: {path}" if path else place
    if unknown := _UNKNOWN.fullmatch(text):
        known = _fields(path)
        close = difflib.get_close_matches(unknown[1], known, n=1)
        cure = f"do you mean {close[0]}?" if close else f"it may have {', '.join(known)}"
        return InputError(f"there is no {unknown[1]!r}", place=place, cure=cure)
    if missing := _MISSING.fullmatch(text):
        return InputError(f"{missing[1]} is missing", place=place)
    if low := _LOW.fullmatch(text):
        return InputError(f"it must be {low[1]} or more", place=place)
    if wrong := _WRONG.fullmatch(text):
        nouns = " or ".join(_NOUNS.get(one.strip(), one.strip()) for one in wrong[1].split("|"))
        type_name = _NOUNS.get(wrong[3], wrong[3])
        cure = 'write it in quotes: "1.36"' if path.startswith("profiles[") else ""
        return InputError(f"it must be {nouns}, and is {type_name}", place=place, cure=cure)
    return InputError(text, place=place)


def _fields(path: str) -> tuple[str, ...]:
    """The fields of the part of a plan at a path."""
    kinds = {"fleets": SweepFleet, "changes": InputChange}
    return kinds.get(path.partition("[")[0], SweepPlan).__struct_fields__


def _check(place: str, choices: Sequence[JsonObject]) -> None:
    """Raises InputError if all choices are invalid; what one release lacks fails in its runs."""
    problems: list[InputError] = []
    for settings in choices:
        try:
            profiles.from_settings(settings)
            registry.options_from(settings)
        except InputError as problem:
            problems.append(problem)
    if len(problems) == len(choices):
        raise InputError(problems[0].problem, place=place, cure=problems[0].cure) from problems[0]


def seeds_of(plan: SweepPlan) -> Sequence[int]:
    """The seeds: the listed ones, or the given number of seeds from 0 on."""
    return range(plan.seeds) if isinstance(plan.seeds, int) else plan.seeds


def cells(plan: SweepPlan) -> Iterator[Cell]:
    """All cells, in the order of the plan."""
    number = 0
    for history in (*plan.histories, *(fleet.name for fleet in plan.fleets)):
        bases: dict[int, int] = {}
        for profile, gates, quirks, change, seed in _choices(plan):
            yield Cell(
                number=number,
                base=bases.setdefault(seed, number),
                history=history,
                profile=profile,
                gates=gates,
                quirks=quirks,
                change=change,
                seed=seed,
                jitter=plan.jitter,
            )
            number += 1


def _choices(plan: SweepPlan) -> Iterator[tuple[Any, ...]]:
    changes = (None, *plan.changes)
    return product(plan.profiles, plan.gates, plan.quirks, changes, seeds_of(plan))
