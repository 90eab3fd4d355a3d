"""Who asks: bearer tokens, anonymous on loopback, impersonation. Parity: api-surface.md 14."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.api.messages import Request
from app.domain.errors import Forbidden, Unauthorized
from app.domain.log import Actor

ANONYMOUS = Actor(user="system:anonymous", groups=("system:unauthenticated",))
ADMIN = Actor(user="redra-admin", groups=("system:masters", "system:authenticated"))
_AGENT_MAX = 256
_REMEMBERED_MAX = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Known tokens and who they are. `anonymous` is None when a token is required.

    `may_impersonate` are groups whose members may act as others.
    """

    tokens: Mapping[str, Actor] = field(default_factory=dict)
    anonymous: Actor | None = ANONYMOUS
    may_impersonate: frozenset[str] = frozenset({"system:masters"})


class Authenticator:
    """Names the actor of a request; remembers recent combinations of headers."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._remembered: dict[tuple[str, str], Actor] = {}

    def identify(self, request: Request) -> Actor:
        """The actor. Raises Unauthorized or Forbidden."""
        place = (request.header(b"authorization"), request.header(b"user-agent"))
        actor = self._remembered.get(place)
        if actor is None:
            actor = self._authenticate(*place)
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[place] = actor
        wanted = request.header(b"impersonate-user")
        if wanted:
            return self._impersonate(actor, wanted, request)
        return actor

    def _authenticate(self, authorization: str, agent: str) -> Actor:
        known = self._credentials
        agent = agent[:_AGENT_MAX]
        if authorization:
            scheme, _, token = authorization.partition(" ")
            found = known.tokens.get(token.strip())
            if scheme.lower() != "bearer" or found is None:
                raise Unauthorized("Unauthorized")
        elif known.anonymous is not None:
            found = known.anonymous
        else:
            raise Unauthorized("Unauthorized")
        return Actor(user=found.user, groups=found.groups, agent=agent)

    def _impersonate(self, actor: Actor, wanted: str, request: Request) -> Actor:
        anonymous = self._credentials.anonymous
        allowed = anonymous is not None and actor.user == anonymous.user
        if not allowed and not self._credentials.may_impersonate.intersection(actor.groups):
            raise Forbidden(
                f'users "{wanted[:64]}" is forbidden: User "{actor.user}" cannot impersonate '
                'resource "users" in API group "" at the cluster scope',
                resource="users",
                name=wanted[:64],
            )
        groups = tuple(request.header_list(b"impersonate-group"))
        return Actor(
            user=wanted,
            groups=(*groups, "system:authenticated"),
            agent=actor.agent,
            impersonated_by=actor.user,
        )
