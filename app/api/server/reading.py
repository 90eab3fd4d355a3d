"""Query parameters and JSON bodies of requests, of which nothing is passed over."""

import json
from collections.abc import Collection
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from app.analysis import scope
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest
from app.domain.values.json_tree import JsonObject

_Body = TypeVar("_Body", bound=BaseModel)


def check_parameters(request: HttpRequest, names: Collection[str] | None) -> None:
    """Raise BadRequest for a query parameter that is none of these, or that is given twice.

    None: nothing is served there, and the answer says so.
    """
    if names is None:
        return
    for name, values in request.query.items():
        if name not in names:
            others = scope.nearest(name, names) or f"it has {', '.join(sorted(names)) or 'none'}"
            raise BadRequest(f'there is no parameter "{name[:64]}" here: {others}')
        if len(values) > 1:
            raise BadRequest(f'the parameter "{name}" is given {len(values)} times')


async def body(request: HttpRequest, model: type[_Body], limits: ApiLimits) -> _Body:
    """The body. Raises BadRequest for a value of another type, or a field that occurs again."""
    text = await request.body(bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max)
    try:
        parsed = model.model_validate_json(text, strict=True)
    except ValidationError as problem:
        raise BadRequest(_problem_text(problem)) from problem
    try:
        json.loads(text, object_pairs_hook=_without_repeated_names)
    except RecursionError as problem:
        raise BadRequest("the body is too deep") from problem
    return parsed


def _without_repeated_names(pairs: list[tuple[str, object]]) -> JsonObject:
    """The fields of an object. Raises BadRequest for one that occurs again, which would be lost."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        name = next(name for name in fields if names.count(name) > 1)
        raise BadRequest(f"the field {name[:64]!r} occurs {names.count(name)} times in one object")
    return fields


def _problem_text(problem: ValidationError) -> str:
    """The first thing that is wrong with a body, and where."""
    first = problem.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    return f"{place}: {text}" if place else text


def check_query(request: HttpRequest) -> None:
    """Raise BadRequest for a parameter with the character 0, which no name contains."""
    for name, values in request.query.items():
        if any("\0" in value for value in values):
            raise BadRequest(f"the parameter {name[:64]!r} holds the character 0")
