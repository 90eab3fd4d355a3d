"""Content negotiation: chooses the representation from the Accept header.

Parity: api.md 1 and 6. The first alternative that can be served wins. Weights other than zero are
ignored, because the real server walks the list in order too.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from app.domain.errors import NotAcceptable
from app.domain.objects.registry import Kind
from app.domain.values import api_groups


class Shape(StrEnum):
    """The part or form of an object that is shown."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Encoding(StrEnum):
    """The encoding of a response; the values are the media types."""

    JSON = "application/json"
    YAML = "application/yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiatedForm:
    """The chosen representation. `version` is that of the meta group, for tables and metadata.

    `of` is empty, "object" or "list": clients ask for the metadata of one object or of a list.
    """

    shape: Shape = Shape.OBJECT
    encoding: Encoding = Encoding.JSON
    version: str = "v1"
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRange:
    """One alternative of an Accept header."""

    type: str
    parameters: tuple[tuple[str, str], ...]

    def parameter(self, name: str) -> str:
        """The value of a parameter; empty when it is absent."""
        return next((value for key, value in self.parameters if key == name), "")


PLAIN = NegotiatedForm()

_JSON_RANGES = frozenset({"application/json", "*/*"})
_SERVED = (*_JSON_RANGES, "application/yaml")
_NOT_ACCEPTABLE = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
)
_META_VERSIONS = ("v1", "v1beta1")


@lru_cache(maxsize=512)
def parse(accept: str) -> tuple[MediaRange, ...]:
    """The alternatives of an Accept header, in order, without those of weight zero."""
    ranges = []
    for part in accept.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        parameters = []
        for piece in rest:
            key, _, value = piece.partition("=")
            parameters.append((key.strip().lower(), value.strip().strip('"')))
        if name and ("q", "0") not in parameters:
            ranges.append(MediaRange(type=name.lower(), parameters=tuple(parameters)))
    return tuple(ranges)


@lru_cache(maxsize=512)
def choose(accept: str) -> NegotiatedForm:
    """The form of objects and lists in a response. Raises NotAcceptable."""
    if not accept:
        return PLAIN
    for alternative in parse(accept):
        form = _form(alternative)
        if form is not None:
            return form
    if any(alternative.type in _SERVED for alternative in parse(accept)):
        raise NotAcceptable(
            "only the following media types are accepted: application/json, application/yaml"
        )
    raise NotAcceptable(_NOT_ACCEPTABLE, is_generic=True)


def check_of(form: NegotiatedForm, *, is_list: bool, kind: Kind) -> None:
    """Raise NotAcceptable for metadata of one object on a list, or of a list on one object."""
    if form.of == "object" and is_list:
        raise NotAcceptable(
            "you requested PartialObjectMetadata, but the requested object is a list "
            f"({_go_type(kind)}List)"
        )
    if form.of == "list" and not is_list:
        raise NotAcceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            f"({_go_type(kind)})"
        )


def _go_type(kind: Kind) -> str:
    """The type of a kind's objects inside the API server: `*resource.ResourceClaim`."""
    if kind.custom is not None:
        return "*unstructured.Unstructured"
    package = kind.group.partition(".")[0] or "core"
    return f"*{package}.{kind.kind}"


@lru_cache(maxsize=64)
def check_json(accept: str) -> None:
    """Raise NotAcceptable for a client that does not accept JSON."""
    if accept and all(alternative.type not in _JSON_RANGES for alternative in parse(accept)):
        raise NotAcceptable("only the following media types are accepted: application/json")


@lru_cache(maxsize=64)
def wants_aggregated_discovery(accept: str) -> bool:
    """Whether the first servable alternative is the aggregated discovery document."""
    for alternative in parse(accept):
        if alternative.type not in _JSON_RANGES:
            continue
        wanted = alternative.parameter("as")
        if not wanted:
            return False
        if (
            wanted == "APIGroupDiscoveryList"
            and alternative.parameter("g") == api_groups.API_DISCOVERY
            and alternative.parameter("v") == "v2"
        ):
            return True
    return False


def _form(alternative: MediaRange) -> NegotiatedForm | None:
    if alternative.type in _JSON_RANGES:
        encoding = Encoding.JSON
    elif alternative.type == "application/yaml":
        encoding = Encoding.YAML
    else:
        return None
    wanted = alternative.parameter("as")
    if not wanted:
        return NegotiatedForm(encoding=encoding)
    version = alternative.parameter("v")
    if alternative.parameter("g") != api_groups.META or version not in _META_VERSIONS:
        return None
    if wanted == "Table":
        return NegotiatedForm(shape=Shape.TABLE, encoding=encoding, version=version)
    if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        of = "list" if wanted.endswith("List") else "object"
        return NegotiatedForm(shape=Shape.METADATA, encoding=encoding, version=version, of=of)
    return None
