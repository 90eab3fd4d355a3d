"""Posted forms: a proposal of objects to apply or delete, and of nodes to cordon or drain."""

from collections.abc import Sequence
from urllib.parse import parse_qs

from app.analysis.blast import compare
from app.analysis.blast.compare import Change
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, InputError
from app.domain.objects.schema import decode
from app.web.pages.blast import Typed

_FIELDS_MAX = 10


async def proposal(request: HttpRequest, limits: ApiLimits) -> Typed:
    """The proposal in a form, as it was typed. Raises BadRequest."""
    body = await request.body(bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max)
    try:
        fields = parse_qs(body.decode(), max_num_fields=_FIELDS_MAX)
    except ValueError as problem:
        raise BadRequest("the form cannot be read") from problem
    first = {name: values[0].replace("\r\n", "\n") for name, values in fields.items()}
    return Typed(
        manifest=first.get("manifest", ""),
        delete=first.get("delete", ""),
        cordon=first.get("cordon", ""),
        drain=first.get("drain", ""),
    )


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
