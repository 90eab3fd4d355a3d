"""`-o name`: the names of the objects in an answer, one per line, for every command."""

from collections.abc import Iterator
from typing import Any

from app.domain.errors import InputError

_LISTS = ("items", "objects", "pools", "entries", "rows", "effects", "pods", "roots")
"""The fields of answers that hold lists, the outer ones first."""

_PLAIN = ("incident", "device")
"""The fields that hold the name of something other than an object."""


def names_in(answer: Any) -> list[str]:
    """The names in an answer, each once, in order.

    Raises InputError for an answer without names.
    """
    names = list(dict.fromkeys(_names(answer)))
    if not names and not _is_empty(answer):
        raise InputError("this answer has no names", place="-o", cure="use json")
    return names


def _is_empty(answer: Any) -> bool:
    """True if a list in the answer is empty."""
    if isinstance(answer, list):
        return not answer
    return isinstance(answer, dict) and any(answer.get(part) == [] for part in _LISTS)


def _names(answer: Any) -> Iterator[str]:
    if isinstance(answer, list):
        for item in answer:
            yield from _names(item)
    elif isinstance(answer, dict):
        lists = [answer[part] for part in _LISTS if isinstance(answer.get(part), list)]
        if name := _name(answer):
            yield name
        elif lists:
            for part in lists:
                yield from _names(part)
        elif isinstance(answer.get("name"), str) and answer["name"]:
            yield answer["name"]


def _name(row: dict[str, Any]) -> str:
    """The name of the subject of a row; empty without one."""
    resource, name = row.get("resource"), row.get("name")
    if isinstance(resource, str) and resource and isinstance(name, str) and name:
        from app.domain.objects import registry

        group = row.get("group")
        kinds = [kind for kind in registry.named(resource) if group in (None, kind.group)]
        noun = kinds[0].singular if kinds else f"{resource}.{group}" if group else resource
        place = row.get("namespace")
        return f"{noun}/{place}/{name}" if place else f"{noun}/{name}"
    if isinstance(subject := row.get("subject"), str) and subject:
        return "/".join(subject.split(" "))
    if isinstance(row.get("pool"), str) and isinstance(row.get("driver"), str):
        return f"pool/{row['driver']}/{row['pool']}"
    return next((row[part] for part in _PLAIN if isinstance(row.get(part), str) and row[part]), "")
