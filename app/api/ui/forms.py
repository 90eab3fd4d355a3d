"""Posted forms: objects to apply or delete, nodes to cordon or drain, and the plan of a sweep."""

from collections.abc import Sequence
from urllib.parse import parse_qs

from app.analysis.blast import compare
from app.analysis.blast.compare import Change
from app.api.redra import models, rehearsals
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, InputError
from app.domain.objects.schema import decode
from app.domain.values.json_tree import JsonObject
from app.web.pages.blast import Typed
from app.web.pages.sweeps import TypedPlan

CANCEL = "cancel"
"""The field for the job that a form cancels."""

_FIELDS_MAX = 10


async def proposal(request: HttpRequest, limits: ApiLimits) -> Typed:
    """The proposal in a form, as it was typed. Raises BadRequest."""
    fields = await _fields(request, limits, _FIELDS_MAX)
    first = {name: values[0].replace("\r\n", "\n") for name, values in fields.items()}
    return Typed(
        manifest=first.get("manifest", ""),
        delete=first.get("delete", ""),
        cordon=first.get("cordon", ""),
        drain=first.get("drain", ""),
        name=first.get("name", "").strip(),
    )


def fork(typed: Typed, moment: str, limits: ApiLimits) -> models.NewFork:
    """The fork at a moment with a change, as it was typed. Raises InputError, BadRequest."""
    if not typed.name:
        raise InputError("the fork has no name", cure="name it, in letters, digits and dashes")
    if _words(typed.drain):
        raise InputError("a fork drains no node", cure="cordon it, and drain it in the fork")
    trees = []
    for place, tree in documents(typed.manifest, limits):
        if not isinstance(tree, dict):
            raise InputError("not an object", place=place)
        trees.append(tree)
    cordoned = {"spec": {"unschedulable": True}}
    return models.NewFork.model_validate(
        {
            "name": typed.name,
            "at": moment,
            "apply": trees,
            "delete": [*_words(typed.delete)],
            "patch": {f"node/{node}": cordoned for node in _words(typed.cordon)},
        }
    )


async def plan(request: HttpRequest, limits: ApiLimits) -> TypedPlan:
    """The plan in a form, as it was typed. Raises BadRequest."""
    fields = await _fields(request, limits, _FIELDS_MAX + limits.jobs.cells_max)
    texts = {
        name: fields.get(name, [""])[0].replace("\r\n", "\n").strip()
        for name in ("name", "gates", "quirks", "seeds")
    }
    return TypedPlan(
        histories=tuple(fields.get("histories", ())),
        profiles=tuple(fields.get("profiles", ())),
        **texts,
    )


async def cancelled(request: HttpRequest, limits: ApiLimits) -> str:
    """The job that a form cancels. Raises BadRequest."""
    fields = await _fields(request, limits, _FIELDS_MAX)
    if fields.keys() != {CANCEL}:
        raise BadRequest(f"the form has one field, {CANCEL}")
    return fields[CANCEL][0]


def plan_tree(typed: TypedPlan) -> JsonObject:
    """The plan as in a file for `redra sweep`. Raises BadRequest.

    The first run of each history is as it is: its own release, gates and behaviours.
    """
    if not typed.histories:
        raise BadRequest("choose a history")
    if typed.seeds and not (typed.seeds.isascii() and typed.seeds.isdigit()):
        raise BadRequest(f'the number of orders must be a whole number, not "{typed.seeds[:64]}"')
    return {
        "histories": list(typed.histories),
        "profiles": ["", *typed.profiles],
        "gates": [{}, *_switches("gates", typed.gates)],
        "quirks": [{}, *_switches("quirks", typed.quirks)],
        "seeds": int(typed.seeds or "1"),
    }


def _switches(name: str, text: str) -> list[dict[str, bool]]:
    """The sets of switches in a text, one a line."""
    return [rehearsals.read_switches(line, name) for line in text.splitlines() if line.strip()]


async def _fields(request: HttpRequest, limits: ApiLimits, fields_max: int) -> dict[str, list[str]]:
    """The fields of a posted form. Raises BadRequest."""
    body = await request.body(bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max)
    try:
        return parse_qs(body.decode(), max_num_fields=fields_max)
    except ValueError as problem:
        raise BadRequest("the form cannot be read") from problem


def documents(manifest: str, limits: ApiLimits) -> list[tuple[str, object]]:
    """The documents in a text, each with its place. Raises InputError, BadRequest."""
    decoded = decode.decode_yaml_documents(manifest.encode(), limits.body)
    return [
        (f"document {number}", one.value)
        for number, one in enumerate(decoded, start=1)
        if one.value is not None
    ]


def changes(typed: Typed, limits: ApiLimits) -> Sequence[Change]:
    """The changes of a proposal. Raises InputError, BadRequest."""
    trees = documents(typed.manifest, limits)
    proposed = compare.read_changes(
        trees, _words(typed.delete), _words(typed.cordon), _words(typed.drain)
    )
    if not proposed:
        raise InputError(
            "no change is proposed", cure="paste objects, or name one to delete or a node to close"
        )
    return proposed


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
