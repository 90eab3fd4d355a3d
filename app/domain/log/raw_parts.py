"""The raw parts of pods and claims: one split of their bytes that all readers share.

This is the border between the folds and the judge of invariants. This module only locates the
parts; each reader interprets them independently. Lists and mappings are passed on as bytes, texts
as text. A text field of another type (such as a number) counts as absent, as does a part that is
not a mapping.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from app.domain.values import api_resources

_T = TypeVar("_T")

ABSENT = Raw()
"""The bytes of a part that is absent."""


class _Parts(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Parts of an object; an absent part has its default."""


class RawMetadata(_Parts, frozen=True, gc=False, rename="camel"):
    """The parts of the metadata of a pod or a claim."""

    deletion_timestamp: str = ""
    finalizers: Raw = ABSENT
    owner_references: Raw = ABSENT


class RawPodSpec(_Parts, frozen=True, gc=False, rename="camel"):
    """The parts of a pod's spec."""

    node_name: str = ""
    resource_claims: Raw = ABSENT
    scheduling_group: Raw = ABSENT
    volumes: Raw = ABSENT


class RawPodStatus(_Parts, frozen=True, gc=False, rename="camel"):
    """The parts of a pod's status."""

    phase: str = ""
    conditions: Raw = ABSENT
    resource_claim_statuses: Raw = ABSENT
    extended_resource_claim_status: Raw = ABSENT


class RawPod(_Parts, frozen=True, gc=False, rename="camel"):
    """The parts of a pod."""

    metadata: RawMetadata = RawMetadata()
    spec: RawPodSpec = RawPodSpec()
    status: RawPodStatus = RawPodStatus()


class RawClaimStatus(_Parts, frozen=True, gc=False, rename="camel"):
    """The parts of a claim's status."""

    allocation: Raw = ABSENT
    reserved_for: Raw = ABSENT
    devices: Raw = ABSENT


class RawClaim(_Parts, frozen=True, gc=False, rename="camel"):
    """The parts of a claim."""

    metadata: RawMetadata = RawMetadata()
    spec: Raw = ABSENT
    status: RawClaimStatus = RawClaimStatus()


def splitter(form: type[_T]) -> Callable[[bytes], _T]:
    """The function that splits an object's bytes into a form of texts, bytes and nested forms."""
    decode = msgspec.json.Decoder(form).decode

    def split(body: bytes) -> _T:
        try:
            return decode(body)
        except msgspec.ValidationError:
            parts: _T = _split_odd(form, Raw(body))
            return parts

    return split


def _split_odd(form: Any, part: Raw) -> Any:
    """The readable parts of bytes that do not fit the form."""
    try:
        stored = _mapping(part)
    except msgspec.ValidationError:
        return form()
    parts: dict[str, Any] = {}
    for field in msgspec.structs.fields(form):
        inner = stored.get(field.encode_name)
        if inner is None:
            continue
        # An identifier, such as a Uid, is a text when the code runs.
        kind = getattr(field.type, "__supertype__", field.type)
        if kind is Raw:
            parts[field.name] = inner
        elif kind is not str:
            parts[field.name] = _split_odd(kind, inner)
        else:
            with suppress(msgspec.ValidationError):
                parts[field.name] = _text(inner)
    return form(**parts)


_mapping = msgspec.json.Decoder(dict[str, Raw]).decode
_text = msgspec.json.Decoder(str).decode

of_pod = splitter(RawPod)
of_claim = splitter(RawClaim)

SPLITTERS: Mapping[tuple[str, str], Callable[[bytes], Any]] = {
    api_resources.PODS: of_pod,
    api_resources.RESOURCE_CLAIMS: of_claim,
}
"""The splitters by kind. Most events are about these kinds."""
