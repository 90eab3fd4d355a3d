"""The lookup of built-in kinds by path, by `apiVersion` and `kind`, or by a short name.

The kinds are the rows of `builtin`. The profile decides which of them are served in which versions.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from app.domain.objects.builtin import BOTH_LABELS, KINDS, NAME_LABEL
from app.domain.objects.kind import (
    ALL_VERBS,
    READ_VERBS,
    WRITE_VERBS,
    FieldLabel,
    Kind,
    Served,
    api_version,
    split_api_version,
)
from app.domain.objects.profile import Profile
from app.domain.values.texts import kind_words


def find(group: str, resource: str) -> Kind | None:
    """The kind with this group (or alias group) and plural."""
    return _BY_RESOURCE.get((group, resource))


def find_kind(group: str, version: str, kind: str) -> Kind | None:
    """The kind with this group, version and name; None when the kind has no such version."""
    kind_row = _BY_KIND.get((group, kind))
    if kind_row is None or (group, version) not in kind_row.group_versions:
        return None
    return kind_row


def find_name(name: str) -> list[Kind]:
    """The kinds called `name`: kind, plural, singular or short name, in any case."""
    return [kind for kind in KINDS if is_called(kind, name)]


def titled(subject: str) -> str:
    """A singular and a name as people write them: `ResourceSlice n0` for `resourceslice n0`."""
    noun, _, name = subject.partition(" ")
    for kind in KINDS:
        if name and kind.singular == noun:
            return f"{kind_words.in_sentence(kind.kind)} {name}"
    return subject


_SPOKEN = {
    "claim": "resourceclaim",
    "claims": "resourceclaims",
    "template": "resourceclaimtemplate",
    "templates": "resourceclaimtemplates",
    "class": "deviceclass",
    "classes": "deviceclasses",
    "slice": "resourceslice",
    "slices": "resourceslices",
    "patch": "resourceslicepatch",
    "patches": "resourceslicepatches",
    "rule": "devicetaintrule",
    "rules": "devicetaintrules",
}
"""Spoken names of DRA kinds, which have no short names."""


def named(name: str, kinds: Iterable[Kind] = KINDS) -> list[Kind]:
    """The kinds called `name`, or if there is none, the kinds with this spoken name."""
    listed = tuple(kinds)
    named = [kind for kind in listed if is_called(kind, name)]
    if not named and (full := _SPOKEN.get(name.lower())):
        named = [kind for kind in listed if is_called(kind, full)]
    return named


def is_called(kind: Kind, name: str) -> bool:
    """Whether `name` names the kind, in any case; the group may follow after a dot."""
    plain, _, group = name.lower().partition(".")
    names = (kind.plural, kind.singular, kind.kind.lower(), *kind.short_names)
    return plain in names and (not group or kind.group == group)


def kinds() -> tuple[Kind, ...]:
    """The built-in kinds in the order of their table."""
    return KINDS


def is_served(kind: Kind, group: str, version: str, profile: Profile) -> bool:
    """True when the profile serves the kind in that group and version."""
    return _is_served(kind, group, version, profile.version, profile.open_gates)


@lru_cache(maxsize=1_024)
def _is_served(kind: Kind, group: str, version: str, release: str, on: frozenset[str]) -> bool:
    """The cached part of `is_served`, which every request and every write calls."""
    if (group, version) not in kind.group_versions:
        return False
    if kind.gate and kind.gate not in on:
        return False
    times = (kind.served or {}).get(version)
    if times is None:
        return True
    minor = int(release.partition(".")[2])
    return times.since <= minor and (not times.until or minor < times.until)


def served_versions(kind: Kind, profile: Profile) -> tuple[tuple[str, str], ...]:
    """The (group, version) pairs in which the profile serves the kind, preferred first."""
    pairs = [pair for pair in kind.group_versions if is_served(kind, *pair, profile)]
    return tuple(sorted(pairs, key=lambda pair: version_rank(pair[1])))


def served_kinds(profile: Profile) -> list[Kind]:
    """The kinds that the profile serves in some version."""
    return [kind for kind in KINDS if served_versions(kind, profile)]


def deprecation(kind: Kind, version: str, profile: Profile) -> str:
    """The warning for requests that use a deprecated version; empty for other versions.

    Parity: api.md 1 (recorded: 1.36).
    """
    if kind.custom is not None:
        version_row = kind.custom.versions.get(version)
        return version_row.warning if version_row is not None else ""
    times = (kind.served or {}).get(version)
    if times is None or not times.deprecated or profile.minor < times.deprecated:
        return ""
    text = f"{api_version(kind.group, version)} {kind.kind} is deprecated in v1.{times.deprecated}+"
    if times.until:
        text += f", unavailable in v1.{times.until}+"
    return f"{text}; use {times.successor}" if times.successor else text


_KUBE_LIKE = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def version_rank(version: str) -> tuple[int, int, int, str]:
    """The sort key of a version by preference: v1, v1beta2, v1beta1, v1alpha3, then other names."""
    match = _KUBE_LIKE.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    number, stage, step = match.groups()
    return _STAGES[stage], -int(number), -int(step or 0), ""


def _by_resource(rows: Iterable[Kind]) -> dict[tuple[str, str], Kind]:
    by_resource = {(kind.group, kind.plural): kind for kind in rows}
    by_resource |= {(kind.alias_group, kind.plural): kind for kind in rows if kind.alias_group}
    return by_resource


def _by_kind(rows: Iterable[Kind]) -> dict[tuple[str, str], Kind]:
    by_kind = {(kind.group, kind.kind): kind for kind in rows}
    by_kind |= {(kind.alias_group, kind.kind): kind for kind in rows if kind.alias_group}
    return by_kind


_BY_RESOURCE = _by_resource(KINDS)
_BY_KIND = _by_kind(KINDS)

__all__ = [
    "ALL_VERBS",
    "BOTH_LABELS",
    "NAME_LABEL",
    "READ_VERBS",
    "WRITE_VERBS",
    "FieldLabel",
    "Kind",
    "Served",
    "api_version",
    "deprecation",
    "find",
    "find_kind",
    "find_name",
    "is_served",
    "kinds",
    "named",
    "served_kinds",
    "served_versions",
    "split_api_version",
    "version_rank",
]
