"""Tokens of service accounts: issued on request, signed, short-lived, valid in one history.

A token is a JSON Web Token signed with the key of the data folder, so that it stays valid after a
restart and in other processes; no token is stored. A token is accepted until it expires, and only
while its account, and the pod or other object that it is bound to, exist with the same uid.
Parity: TokenRequest of authentication.k8s.io/v1; api.md 11 and 14.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from app.api.identity.authentication import Identity
from app.api.server.messages import PEER, HttpRequest
from app.domain.errors import Conflict, NotFound, Unauthorized
from app.domain.log import Actor, HistoryInfo, ObjectKey
from app.domain.objects import field_errors
from app.domain.objects.access import rules
from app.domain.objects.access.rules import AUTHENTICATED
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.fields.meta import Reference
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant
from app.service.runtime import HistoryRuntime

AUDIENCE = "https://kubernetes.default.svc.cluster.local"
"""The default audience of tokens; this server accepts only tokens for this audience."""

SECONDS_DEFAULT = 3_600
SECONDS_MIN = 600
SECONDS_MAX = 2**32
_TOKEN_MAX = 8_192

_EXTRA = "authentication.kubernetes.io/"
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_HEADER = {"alg": "HS256", "typ": "JWT"}
_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTokens:
    """Issues and checks tokens. Without a key no token is issued or accepted."""

    key: bytes = field(default=b"", repr=False)

    def issue(
        self, runtime: HistoryRuntime, account: ObjectKey, tree: JsonView, now: Instant
    ) -> JsonObject:
        """The answer to a TokenRequest for an account. Raises NotFound, Conflict, Invalid."""
        reader = runtime.views.objects
        account_tree = reader.get(account)
        if account_tree is None:
            raise _absent("serviceaccounts", account.name)
        spec = meta.spec(tree)
        seconds = _seconds(spec)
        audiences = json_tree.texts(spec, "audiences") or [AUDIENCE]
        end = Instant(now + seconds * SECOND)
        private: JsonObject = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": meta.uid(account_tree)},
        }
        reference = json_tree.mapping(spec, "boundObjectRef")
        if reference:
            private |= _bound(reader, account.namespace, meta.reference(reference))
        claims = {
            "aud": audiences,
            "exp": end // SECOND,
            "iat": now // SECOND,
            "iss": AUDIENCE,
            "kubernetes.io": private,
            "redra.history": str(runtime.info.id),
            "sub": rules.service_account(account.namespace, account.name),
        }
        wanted: JsonObject = {"audiences": audiences, "expirationSeconds": seconds}
        wanted["boundObjectRef"] = dict(reference) if reference else None
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{api_groups.AUTHENTICATION}/v1",
            "metadata": {
                "name": account.name,
                "namespace": account.namespace,
                "creationTimestamp": timestamps.seconds_text(now),
            },
            "spec": wanted,
            "status": {
                "token": self._signed(claims),
                "expirationTimestamp": timestamps.seconds_text(end),
            },
        }

    def claims_of(self, request: HttpRequest) -> JsonObject | None:
        """The claims of a token signed with our key; None when the request has no such token."""
        if request.scope.get(PEER) is not None:
            return None
        authorization = request.header(b"authorization")
        if not authorization:
            return None
        scheme, _, token = authorization.partition(" ")
        return self.read(token.strip()) if scheme.lower() == "bearer" else None

    def identify(self, runtime: HistoryRuntime, claims: JsonView) -> Identity:
        """The identity of a token. Raises Unauthorized when it expired or is of another history."""
        identity = self._identity(runtime, claims)
        if identity is None or AUDIENCE not in json_tree.texts(claims, "aud"):
            raise Unauthorized("Unauthorized")
        return identity

    def check_meant_for(self, history: HistoryInfo, claims: JsonView) -> None:
        """Raise Unauthorized for a token of another history."""
        if claims["redra.history"] != str(history.id):
            raise Unauthorized("Unauthorized")

    def review(
        self, runtime: HistoryRuntime, token: str, audiences: Sequence[str]
    ) -> tuple[Identity, list[str]] | None:
        """The identity of a token and its matching audiences; None for a token that is invalid."""
        claims = self.read(token)
        if claims is None:
            return None
        wanted = audiences or (AUDIENCE,)
        meant = [name for name in wanted if name in json_tree.texts(claims, "aud")]
        identity = self._identity(runtime, claims) if meant else None
        return None if identity is None else (identity, meant)

    def read(self, token: str) -> JsonObject | None:
        """The claims of a token signed with our key, expired or not; None for another token."""
        text, dot, signature = token.rpartition(".")
        if not self.key or not dot or len(token) > _TOKEN_MAX or not token.isascii():
            return None
        if not hmac.compare_digest(self._signature(text), signature):
            return None
        try:
            body = text.partition(".")[2]
            claims: JsonObject = msgspec.json.decode(base64.urlsafe_b64decode(_padded(body)))
        except (binascii.Error, msgspec.DecodeError):
            return None
        return claims

    def _identity(self, runtime: HistoryRuntime, claims: JsonView) -> Identity | None:
        reader = runtime.views.objects
        now = runtime.clock.now()
        if claims["redra.history"] != str(runtime.info.id):
            return None
        if now >= claims["exp"] * SECOND:
            return None
        private = json_tree.mapping(claims, "kubernetes.io")
        namespace = json_tree.text(private, "namespace")
        account = meta.reference(private.get("serviceaccount"))
        if not _is_there(reader, "serviceaccounts", namespace, account):
            return None
        extra: dict[str, tuple[str, ...]] = {}
        for kind, resource in _BINDABLE.items():
            if not json_tree.mapping(private, kind.lower()):
                continue
            bound = meta.reference(private[kind.lower()])
            # The node of a bound pod is only reported; its existence is not checked.
            is_asked = kind != "Node" or "pod" not in private
            place = "" if kind == "Node" else namespace
            if is_asked and not _is_there(reader, resource, place, bound):
                return None
            if kind != "Secret":
                for part, text in (("name", bound.name), ("uid", bound.uid)):
                    if text:
                        extra[f"{_EXTRA}{kind.lower()}-{part}"] = (text,)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        actor = Actor(user=rules.service_account(namespace, account.name), groups=groups)
        return Identity(actor=actor, uid=account.uid, extra=extra)

    def _signed(self, claims: JsonObject) -> str:
        text = f"{_text(_encode(_HEADER))}.{_text(_encode(claims))}"
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return _text(hmac.digest(self.key, text.encode(), hashlib.sha256))


def _seconds(spec: JsonView) -> int:
    """The lifetime of the token in seconds. Raises Invalid."""
    lifetime = json_tree.integer(spec, "expirationSeconds")
    seconds = SECONDS_DEFAULT if lifetime is None else lifetime
    problem = ""
    if seconds < SECONDS_MIN:
        problem = "may not specify a duration less than 10 minutes"
    elif seconds > SECONDS_MAX:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        error = field_errors.invalid("spec.expirationSeconds", seconds, problem)
        raise field_errors.rejection("TokenRequest", api_groups.AUTHENTICATION, "", [error])
    return seconds


def _bound(reader: ObjectsReader, namespace: str, reference: Reference) -> JsonObject:
    """The claims for the bound object. Raises NotFound, Conflict, Invalid."""
    kind, name = reference.kind, reference.name
    resource = _BINDABLE.get(kind)
    if resource is None or reference.api_version not in ("", "v1"):
        problem = "only Pod, Secret and Node of v1 can be bound to"
        error = field_errors.invalid("spec.boundObjectRef", kind, problem)
        raise field_errors.rejection("TokenRequest", api_groups.AUTHENTICATION, "", [error])
    bound = reader.get(_key(resource, "" if kind == "Node" else namespace, name))
    if bound is None:
        raise _absent(resource, name)
    wanted = reference.uid
    if wanted and wanted != meta.uid(bound):
        detail = (
            f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        text = f'Operation cannot be fulfilled on {resource} "{name}": {detail}'
        raise Conflict(text, resource=resource, name=name)
    claims: JsonObject = {kind.lower(): {"name": name, "uid": meta.uid(bound)}}
    node = core.node_name(bound) if kind == "Pod" else ""
    if node:
        claims["node"] = {"name": node}
        of_node = reader.get(_key("nodes", "", node))
        if of_node is not None:
            claims["node"]["uid"] = meta.uid(of_node)
    return claims


def _is_there(reader: ObjectsReader, resource: str, namespace: str, claimed: Reference) -> bool:
    tree = reader.get(_key(resource, namespace, claimed.name))
    return tree is not None and meta.uid(tree) == claimed.uid


def _key(resource: str, namespace: str, name: str) -> ObjectKey:
    return ObjectKey(api_groups.CORE, resource, namespace, name)


def _absent(resource: str, name: str) -> NotFound:
    return NotFound(f'{resource} "{name}" not found', resource=resource, name=name)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)
