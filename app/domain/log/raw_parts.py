"""The parts of pods and claims as they stand in their bytes: one split that all readers share.

This is the border between the folds and the judge of invariants. What stands where is found once,
here; what it means everybody reads by himself: lists and mappings are handed out as their bytes,
and texts as they are. A text that is something else (a number) counts as absent, as does a part
that is no mapping.
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
    """Parts of an object; what is absent has its default."""


class RawMetadata(_Parts, frozen=True, gc=False, rename="camel"):
    """Of a pod or a claim."""

    deletion_timestamp: str = ""
    finalizers: Raw = ABSENT
    owner_references: Raw = ABSENT


class RawPodSpec(_Parts, frozen=True, gc=False, rename="camel"):
    """Of a pod."""

    node_name: str = ""
    resource_claims: Raw = ABSENT


class RawPodStatus(_Parts, frozen=True, gc=False, rename="camel"):
    """Of a pod."""

    phase: str = ""
    conditions: Raw = ABSENT
    resource_claim_statuses: Raw = ABSENT
    extended_resource_claim_status: Raw = ABSENT


class RawPod(_Parts, frozen=True, gc=False, rename="camel"):
    """A pod."""

    metadata: RawMetadata = RawMetadata()
    spec: RawPodSpec = RawPodSpec()
    status: RawPodStatus = RawPodStatus()


class RawClaimStatus(_Parts, frozen=True, gc=False, rename="camel"):
    """Of a claim."""

    allocation: Raw = ABSENT
    reserved_for: Raw = ABSENT


class RawClaim(_Parts, frozen=True, gc=False, rename="camel"):
    """A claim."""

    metadata: RawMetadata = RawMetadata()
    spec: Raw = ABSENT
    status: RawClaimStatus = RawClaimStatus()


def splitter(form: type[_T]) -> Callable[[bytes], _T]:
    """What splits the bytes of an object; the fields of the form are texts, bytes and forms."""
    decode = msgspec.json.Decoder(form).decode

    def split(body: bytes) -> _T:
        try:
            return decode(body)
        except msgspec.ValidationError:
            parts: _T = _split_odd(form, Raw(body))
            return parts

    return split


def _split_odd(form: Any, part: Raw) -> Any:
    """The parts of something that has another form, as far as they are there."""
    try:
        stored = _mapping(part)
    except msgspec.ValidationError:
        return form()
    parts: dict[str, Any] = {}
    for field in msgspec.structs.fields(form):
        inner = stored.get(field.encode_name)
        if inner is None:
            continue
        if field.type is Raw:
            parts[field.name] = inner
        elif field.type is not str:
            parts[field.name] = _split_odd(field.type, inner)
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
"""The kinds that are split, which most events are about."""
