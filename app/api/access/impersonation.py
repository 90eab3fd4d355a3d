"""Impersonation of other users by the Impersonate headers. Parity: api.md 14.

Each impersonated attribute (the user, each group, each extra) needs the verb `impersonate` on it.
The log keeps both user names.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from app.api.identity.authentication import Identity
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest
from app.domain.log import Actor
from app.domain.objects.access import rules
from app.domain.objects.access.rules import AUTHENTICATED, UNAUTHENTICATED, AccessRequest
from app.domain.values import api_groups

_USER = b"impersonate-user"
_GROUP = b"impersonate-group"
_UID = b"impersonate-uid"
_EXTRA = b"impersonate-extra-"

_VALUES_MAX = 64


def is_wanted(request: HttpRequest) -> bool:
    """Whether the request has an Impersonate header."""
    for name, _ in request.scope["headers"]:  # noqa: SIM110 (each request: a generator costs more)
        if name.startswith(b"impersonate-"):
            return True
    return False


def questions(request: HttpRequest) -> list[AccessRequest]:
    """The access questions for the impersonator. Raises BadRequest for headers without a user."""
    listed = list(_questions(request))
    if not request.header(_USER):
        raise BadRequest(
            "impersonation of groups, uids or extras needs the header Impersonate-User"
        )
    if len(listed) > _VALUES_MAX:
        raise BadRequest(f"more than {_VALUES_MAX} impersonation headers")
    return listed


def impersonated(identity: Identity, request: HttpRequest) -> Identity:
    """The impersonated identity; the caller must have checked the right to it."""
    user = request.header(_USER)
    groups = tuple(request.header_list(_GROUP))
    account = rules.split_service_account(user)
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if user == "system:anonymous":
        groups = (UNAUTHENTICATED,)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in _extras(request):
        extra[key] = (*extra.get(key, ()), value)
    actor = Actor(
        user=user,
        groups=groups,
        agent=identity.actor.agent,
        impersonated_by=identity.actor.user,
    )
    return Identity(actor=actor, uid=request.header(_UID), extra=extra)


def _questions(request: HttpRequest) -> Iterator[AccessRequest]:
    user = request.header(_USER)
    account = rules.split_service_account(user)
    if account is not None:
        namespace, name = account
        yield AccessRequest(
            verb="impersonate", resource="serviceaccounts", namespace=namespace, name=name
        )
    elif user:
        yield AccessRequest(verb="impersonate", resource="users", name=user)
    for group in request.header_list(_GROUP):
        yield AccessRequest(verb="impersonate", resource="groups", name=group)
    for uid in request.header_list(_UID):
        yield AccessRequest(
            verb="impersonate", group=api_groups.AUTHENTICATION, resource="uids", name=uid
        )
    for key, value in _extras(request):
        yield AccessRequest(
            verb="impersonate",
            group=api_groups.AUTHENTICATION,
            resource="userextras",
            subresource=key,
            name=value,
        )


def _extras(request: HttpRequest) -> Iterator[tuple[str, str]]:
    for name, value in request.scope["headers"]:
        if name.startswith(_EXTRA):
            key = unquote(name.removeprefix(_EXTRA).decode("latin-1")).lower()
            yield key, value.decode("latin-1")
