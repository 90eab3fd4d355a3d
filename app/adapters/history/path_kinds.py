"""Kinds from the names of files and folders: support bundles store objects without their kind.

Folders take precedence over the file, innermost first, because bundles name folders after kinds and
files after namespaces (`cluster-resources/pods/default.json`). A name may be a plural, a singular,
a short name or the plural of one (`pvcs`), with dashes (`pod-disruption-budgets`), with a group
(`deployments.apps`) or as group, version and plural (`core_v1_pods`, `apps_v1_deployments`).
"""

import re
from functools import lru_cache
from pathlib import PurePosixPath

from app.adapters.history import kinds
from app.domain.objects import registry
from app.domain.objects.kind import Kind, api_version
from app.domain.values.json_tree import JsonObject

_VERSIONED = re.compile(
    r"(?P<group>[a-z0-9.-]+)_(?P<version>v\d+(?:(?:alpha|beta)\d+)?)_(?P<name>\w+)"
)
_SUFFIXES = (".gz", ".json", ".yaml", ".yml", ".jsonl", ".txt")


def completed(tree: JsonObject, path: str) -> JsonObject:
    """The object with the kind from the path of its file or its fields, if they show it."""
    if tree.get("kind") or not isinstance(tree.get("metadata"), dict):
        return tree
    named = ("v1", "Event") if kinds.is_reported(tree) else kind_of(path) or kinds.of_fields(tree)
    if named is None:
        return tree
    version, kind = named
    return {**tree, "apiVersion": tree.get("apiVersion") or version, "kind": kind}


@lru_cache(maxsize=4_096)
def kind_of(path: str) -> tuple[str, str] | None:
    """Version and kind that a path names. Example: `x/pods/default.json` → (`v1`, `Pod`)."""
    parts = PurePosixPath(path).parts
    if not parts:
        return None
    stem = _stem(parts[-1])
    if _VERSIONED.fullmatch(stem.lower()):
        return _named(stem)
    for name in reversed(parts[:-1]):
        named = _named(name)
        # A folder of namespaces holds the objects in them.
        if named is not None and named[1] != "Namespace":
            return named
    return _named(stem)


def _stem(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _named(name: str) -> tuple[str, str] | None:
    text = name.lower()
    versioned = _VERSIONED.fullmatch(text)
    if versioned is not None:
        group = "" if versioned["group"] == "core" else versioned["group"]
        kind = registry.find(group, versioned["name"])
        return None if kind is None else (api_version(group, versioned["version"]), kind.kind)
    kind = _by_name(text)
    return None if kind is None else (kind.storage_api_version, kind.kind)


def _by_name(text: str) -> Kind | None:
    plain, _, group = text.partition(".")
    joined = plain.replace("-", "").replace("_", "")
    for form in (joined, joined.removesuffix("s"), f"{joined}es"):
        for kind in registry.find_name(f"{form}.{group}" if group else form):
            return kind
    return None
