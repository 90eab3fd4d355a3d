"""`-o name`: what an answer is about, a name on each line, as every command takes it."""

from collections.abc import Iterator
from typing import Any

from app.domain.errors import InputError

_LISTS = ("items", "objects", "pools", "entries", "rows", "effects", "pods", "roots")
"""Where answers have what they list, the whole before its parts."""

_PLAIN = ("incident", "device")
"""Fields that name what is no object, before its parts."""


def names_in(answer: Any) -> list[str]:
    """The names, each once, in the order of the answer. Raises InputError where there are none."""
    names = list(dict.fromkeys(_names(answer)))
    if not names and not _is_empty(answer):
        raise InputError("this answer lists nothing that has a name", place="-o", cure="use json")
    return names


def _is_empty(answer: Any) -> bool:
    """Whether an answer lists nothing."""
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
    """The name of what a row is about; empty when it names nothing."""
    resource, name = row.get("resource"), row.get("name")
    if isinstance(resource, str) and resource and isinstance(name, str) and name:
        from app.domain.objects import registry

        group = row.get("group")
        kinds = [kind for kind in registry.spoken(resource) if group in (None, kind.group)]
        noun = kinds[0].singular if kinds else f"{resource}.{group}" if group else resource
        place = row.get("namespace")
        return f"{noun}/{place}/{name}" if place else f"{noun}/{name}"
    if isinstance(subject := row.get("subject"), str) and subject:
        return "/".join(subject.split(" "))
    if isinstance(row.get("pool"), str) and isinstance(row.get("driver"), str):
        return f"pool/{row['driver']}/{row['pool']}"
    return next((row[part] for part in _PLAIN if isinstance(row.get(part), str) and row[part]), "")
