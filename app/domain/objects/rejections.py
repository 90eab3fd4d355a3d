"""The refusals of the API, with the messages of the API server. Parity: api.md 10."""

from app.domain.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    StatusCause,
)
from app.domain.log import ObjectKey
from app.domain.objects.registry import Kind
from app.domain.values import identifiers

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def unknown_resource() -> NotFound:
    """The resource, version or subresource does not exist."""
    return NotFound("the server could not find the requested resource", is_generic=True)


def not_allowed() -> MethodNotAllowed:
    """The resource does not support the verb."""
    return MethodNotAllowed(
        "the server does not allow this method on the requested resource", is_generic=True
    )


def nameless(name: str) -> BadRequest:
    """The body of a write to a named object has no name."""
    return BadRequest(
        f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )


def definition_ends(kind: Kind, verb: str) -> MethodNotAllowed:
    """The definition of a custom kind is being deleted, so the verb is refused."""
    return MethodNotAllowed(
        f"{verb} not allowed while custom resource definition is terminating",
        group=kind.group,
        resource=kind.plural,
    )


def not_found(kind: Kind, name: str) -> NotFound:
    """No object has this name."""
    return NotFound(
        f'{kind.qualified_plural} "{name}" not found',
        group=kind.group,
        resource=kind.plural,
        name=name,
    )


def already_exists(kind: Kind, name: str, *, ends: bool = False) -> AlreadyExists:
    """An object of this name exists; with `ends`, it is being deleted."""
    beginning = "object is being deleted: " if ends else ""
    return AlreadyExists(
        f'{beginning}{kind.qualified_plural} "{name}" already exists',
        group=kind.group,
        resource=kind.plural,
        name=name,
    )


def conflict(kind: Kind, name: str, detail: str = MODIFIED) -> Conflict:
    """The object is not in the state that the write expects."""
    return _conflict(kind, kind.plural, name, detail)


def precondition(kind: Kind, name: str, detail: str) -> Conflict:
    """A precondition of a delete fails; the message names the Kind, not the resource."""
    return _conflict(kind, kind.kind, name, detail)


def subresource_conflict(kind: Kind, subresource: str, name: str, detail: str) -> Conflict:
    """A subresource refuses because of the object's state; the message names `pods/binding`."""
    return _conflict(kind, f"{kind.plural}/{subresource}", name, detail)


def uid_conflict(kind: Kind, key: ObjectKey, wanted: str, actual: str) -> Conflict:
    """A write requires another uid than the object has.

    Parity: api.md 10; the message is that of the storage layer.
    """
    place = key.namespaced_name
    return conflict(
        kind,
        key.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{kind.plural}/{place}, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: "
        f"{wanted}, UID in object meta: {actual}",
    )


def uid_without_object(kind: Kind, name: str, wanted: str) -> Conflict:
    """An apply requires a uid, and the object does not exist."""
    reason = "and no existing object was found"
    detail = f"uid mismatch: the provided object specified uid {wanted}, {reason}"
    return conflict(kind, name, detail)


def forbidden(kind: Kind, name: str, detail: str, *causes: StatusCause) -> Forbidden:
    """Admission refuses the object."""
    return Forbidden(
        f'{kind.qualified_plural} "{name}" is forbidden: {detail}',
        group=kind.group,
        resource=kind.plural,
        name=name,
        causes=causes,
    )


def undecodable(kind: Kind, found_kind: str, version: str, detail: str) -> BadRequest:
    """The body cannot be decoded as an object of the kind."""
    return BadRequest(
        f'{found_kind} in version "{version}" cannot be handled as a {kind.kind}: {detail}',
        undecodable=detail,
    )


def _conflict(kind: Kind, resource: str, name: str, detail: str) -> Conflict:
    qualified = identifiers.qualified_resource(kind.group, resource)
    return Conflict(
        f'Operation cannot be fulfilled on {qualified} "{name}": {detail}',
        group=kind.group,
        resource=resource,
        name=name,
    )
