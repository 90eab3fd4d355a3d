"""Authentication: client certificates, bearer tokens, or anonymous. Parity: api.md 14."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.api.server.messages import PEER, HttpRequest
from app.domain.errors import Forbidden, Unauthorized
from app.domain.log import Actor
from app.domain.objects.access.rules import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from app.domain.values.bounded import Bounded

ANONYMOUS = Actor(user="system:anonymous", groups=(UNAUTHENTICATED,))
ADMIN = Actor(user="redra-admin", groups=(MASTERS, AUTHENTICATED))

_AGENT_MAX = 256
_REMEMBERED_MAX = 4_096
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FOREIGN = frozenset({"cross-site", "same-site"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Known tokens and their users. `anonymous` is None when credentials are required.

    `uids` maps user names to uids. With `loopback_only` a request without credentials must name the
    server by a loopback name and must not come from another site: a web page in a browser must not
    act as its user. `token_key` signs the tokens of service accounts; without it no tokens are
    issued.
    """

    tokens: Mapping[str, Actor] = field(default_factory=dict)
    uids: Mapping[str, str] = field(default_factory=dict)
    anonymous: Actor | None = ANONYMOUS
    loopback_only: bool = False
    token_key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of a user, with the uid and extras that the log does not keep."""

    actor: Actor
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Authenticator:
    """Finds the user of a request; caches recent combinations of headers."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._remembered: Bounded[tuple[object, str, str], Identity] = Bounded(_REMEMBERED_MAX)

    def identify(self, request: HttpRequest) -> Identity:
        """The identity. Raises Unauthorized, or Forbidden for a request of another site."""
        peer: tuple[str, tuple[str, ...]] | None = request.scope.get(PEER)
        authorization = request.header(b"authorization")
        if peer is None and not authorization and self._credentials.loopback_only:
            _check_site(request)
        if peer is not None and request.method not in _SAFE:
            _check_origin(request)
        place = (peer, authorization, request.header(b"user-agent")[:_AGENT_MAX])
        identity = self._remembered.get(place)
        if identity is None:
            identity = self._remembered[place] = self._authenticate(*place)
        return identity

    def identify_token(self, token: str) -> Identity | None:
        """The identity of a token; None for an unknown token."""
        actor = self._credentials.tokens.get(token)
        if actor is None:
            return None
        return Identity(actor=actor, uid=self._credentials.uids.get(actor.user, ""))

    def shown(self, identity: Identity, request: HttpRequest) -> Identity:
        """The identity with the user agent of the request."""
        agent = request.header(b"user-agent")[:_AGENT_MAX]
        actor = identity.actor
        return replace(identity, actor=Actor(user=actor.user, groups=actor.groups, agent=agent))

    def _authenticate(
        self, peer: tuple[str, tuple[str, ...]] | None, authorization: str, agent: str
    ) -> Identity:
        known = self._credentials
        if peer is not None:
            user, groups = peer
            identity = Identity(actor=Actor(user=user, groups=(*groups, AUTHENTICATED)))
        elif authorization:
            scheme, _, token = authorization.partition(" ")
            by_token = self.identify_token(token.strip())
            if scheme.lower() != "bearer" or by_token is None:
                raise Unauthorized("Unauthorized")
            identity = by_token
        elif known.anonymous is not None:
            identity = Identity(actor=known.anonymous)
        else:
            raise Unauthorized("Unauthorized")
        actor = identity.actor
        shown = Actor(user=actor.user, groups=actor.groups, agent=agent)
        return replace(identity, actor=shown)


def _check_site(request: HttpRequest) -> None:
    """Raise Forbidden unless the request names a loopback host and comes from no other site."""
    host = _host_name(request.header(b"host"))
    is_local = host in _LOOPBACK or host.startswith("127.")
    if not is_local or _is_foreign(request, frozenset({"cross-site"})):
        raise Forbidden(
            "forbidden: requests without credentials are served to this machine only, and not to "
            "pages of other sites"
        )


def _check_origin(request: HttpRequest) -> None:
    """Raise Forbidden for a write that a browser sends for a page of another site.

    Browsers send a client certificate without asking, whichever page causes the request.
    """
    if _is_foreign(request, _FOREIGN):
        raise Forbidden("forbidden: a client certificate does not act for pages of other sites")


def _is_foreign(request: HttpRequest, sites: frozenset[str]) -> bool:
    """Whether a browser states that a page of another origin sends the request."""
    origin = request.header(b"origin")
    if origin and origin.partition("://")[2] != request.header(b"host"):
        return True
    return request.header(b"sec-fetch-site") in sites


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
