"""New names for the claims of pods, whose names controllers compose and a server completes.

A run of the redacted history composes the name of such a claim from the new name of its pod. It
finds the recorded claim, with the uid and the name that inputs contain, only if the new name of
that claim is composed in the same way. `pod-8-gpu-x7f2k` of pod `a0003` with the entry `a0001` is
`a0003-a0001-22224`: its suffix is a number in the alphabet of suffixes, in the order of the old
suffixes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from app.domain.controllers.claims import templates
from app.domain.controllers.scheduling.plugins.dynamic_resources import extended_resources
from app.domain.log import Event, EventType
from app.domain.values import api_resources, well_known
from app.domain.values.fields import meta
from app.domain.values.names import GENERATED_BASE_MAX, SUFFIX_ALPHABET, SUFFIX_LENGTH

_DIGITS = "".join(sorted(SUFFIX_ALPHABET))


class GeneratedName(NamedTuple):
    """A new name, and the generateName that it completes."""

    base: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Composed:
    """The name of a claim in its parts; `entry` is empty for the claim of extended resources."""

    name: str
    pod: str
    entry: str
    suffix: str


def new_names(made: Iterable[Event], renamed: Callable[[str], str]) -> Mapping[str, GeneratedName]:
    """The new names of generated claims, by the old ones. `renamed` gives the new name of a pod."""
    claims = list(_composed(made))
    numbers = {text: n for n, text in enumerate(sorted({each.suffix for each in claims}))}
    names = {}
    for claim in claims:
        base = _base(renamed(claim.pod), renamed(claim.entry))
        suffix = _suffix(numbers[claim.suffix])
        names[claim.name] = GeneratedName(base, base[:GENERATED_BASE_MAX] + suffix)
    return names


def _composed(made: Iterable[Event]) -> Iterator[_Composed]:
    """The claims that were created under a name composed of the names of a pod and an entry."""
    for event in made:
        tree = event.object
        owner = meta.controller(tree)
        is_claim = event.key[:2] == api_resources.RESOURCE_CLAIMS
        if not is_claim or event.type is not EventType.OBJECT_CREATED or owner is None:
            continue
        base, entry = meta.generate_name(tree), meta.annotation(tree, well_known.POD_CLAIM_NAME)
        stem = base[:GENERATED_BASE_MAX]
        if base == _base(owner.name, entry) and event.key.name.startswith(stem):
            suffix = event.key.name.removeprefix(stem)
            yield _Composed(name=event.key.name, pod=owner.name, entry=entry, suffix=suffix)


def _base(pod: str, entry: str) -> str:
    return templates.generate_name(pod, entry) if entry else extended_resources.generate_name(pod)


def _suffix(number: int) -> str:
    """A number as a suffix; later numbers sort after it."""
    digits = []
    for _ in range(SUFFIX_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
