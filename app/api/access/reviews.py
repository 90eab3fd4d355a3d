"""Reviews of identities and rights: posted, answered by the rules in force, not stored.

Parity: api.md 2, 11, 14.
"""

from dataclasses import dataclass

from app.api.access.authorization import Authorizer
from app.api.identity.authentication import Authenticator, Identity
from app.api.identity.service_tokens import AUDIENCE, ServiceTokens
from app.api.kubernetes import bodies
from app.api.kubernetes.discovery import ReviewKind
from app.api.kubernetes.paths import ResourcePath
from app.api.kubernetes.representations import encode
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response
from app.domain.errors import BadRequest
from app.domain.log import Actor
from app.domain.objects import field_errors
from app.domain.objects.access.rules import AccessRequest
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.runtime import HistoryRuntime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewParts:
    """The parts that answer reviews."""

    authenticator: Authenticator
    authorizer: Authorizer
    tokens: ServiceTokens
    limits: ApiLimits


async def answer(
    request: HttpRequest,
    review: ReviewKind,
    path: ResourcePath,
    identity: Identity,
    runtime: HistoryRuntime,
    by: ReviewParts,
) -> Response:
    """The review with its status filled in. Raises BadRequest, Invalid."""
    limits = by.limits
    text = await request.body(bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max)
    bounds = limits.body
    tree: JsonObject = {}
    if text:
        decoded = bodies.decode_object(text, bodies.media_type(request), bounds, kind=review.kind)
        tree = decoded.value
    if tree.get("kind", review.kind) != review.kind:
        raise BadRequest(f"the body must be a {review.kind}")
    tree["kind"], tree["apiVersion"] = review.kind, f"{review.group}/v1"
    metadata = tree.get("metadata")
    kept = metadata if isinstance(metadata, dict) else {}
    tree["metadata"] = kept
    spec = meta.spec(tree)
    match review.kind:
        case "SelfSubjectReview":
            tree["status"] = {"userInfo": _user(identity)}
        case "TokenReview":
            if not json_tree.text(spec, "token"):
                raise BadRequest("token is required for TokenReview in authentication")
            tree["status"] = _token_status(spec, runtime, by)
        case "SelfSubjectRulesReview":
            namespace = json_tree.text(spec, "namespace")
            if not namespace:
                raise BadRequest("no namespace on request")
            tree["status"] = _rules(runtime, identity.actor, namespace, by.authorizer)
        case _:
            if review.namespaced:
                _check_namespace(path, spec)
            actor = identity.actor if review.kind.startswith("Self") else _subject(spec)
            question = _question(spec)
            decision = by.authorizer.decide(runtime, actor, question)
            tree["status"] = {"allowed": decision.allowed}
            if decision.reason:
                tree["status"]["reason"] = decision.reason
    return Response(encode(tree), status=201)


def _question(spec: JsonView) -> AccessRequest:
    """The access question of a review: exactly one of a resource and a path."""
    resource = spec.get("resourceAttributes")
    plain = spec.get("nonResourceAttributes")
    if isinstance(resource, dict) == isinstance(plain, dict):
        problem = "cannot be specified in combination with resourceAttributes"
        path, detail = "spec.nonResourceAttributes", problem
        if plain is None:
            path, detail = (
                "spec.resourceAttributes",
                ("exactly one of nonResourceAttributes or resourceAttributes must be specified"),
            )
        error = field_errors.invalid(path, plain, detail)
        raise field_errors.rejection("", api_groups.AUTHORIZATION, "", [error])
    if isinstance(plain, dict):
        return AccessRequest(verb=json_tree.text(plain, "verb"), path=json_tree.text(plain, "path"))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return AccessRequest(**{name: json_tree.text(resource or {}, name) for name in fields})


def _subject(spec: JsonView) -> Actor:
    user, groups = json_tree.text(spec, "user"), json_tree.texts(spec, "groups")
    if not user and not groups:
        error = field_errors.invalid(
            "spec.user", "", "at least one of user or group must be specified"
        )
        raise field_errors.rejection("", api_groups.AUTHORIZATION, "", [error])
    return Actor(user=user, groups=tuple(groups))


def _check_namespace(path: ResourcePath, spec: JsonView) -> None:
    named = json_tree.text(spec, "resourceAttributes", "namespace")
    if named != path.namespace:
        error = field_errors.invalid(
            "spec.resourceAttributes.namespace",
            named,
            "must match metadata.namespace",
        )
        raise field_errors.rejection("", api_groups.AUTHORIZATION, "", [error])


def _rules(
    runtime: HistoryRuntime, actor: Actor, namespace: str, authorizer: Authorizer
) -> JsonObject:
    rules = [rule.tree() for rule in authorizer.grants(runtime, actor).rules(namespace)]
    return {
        "resourceRules": [rule for rule in rules if "resources" in rule],
        "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
        "incomplete": False,
    }


def _token_status(spec: JsonView, runtime: HistoryRuntime, by: ReviewParts) -> JsonObject:
    token, audiences = json_tree.text(spec, "token"), json_tree.texts(spec, "audiences")
    known = by.authenticator.identify_token(token)
    if known is not None:
        # A token file has no audiences, so its tokens are for this server.
        meant = [name for name in audiences or [AUDIENCE] if name == AUDIENCE]
        reviewed = (known, meant) if meant else None
    else:
        reviewed = by.tokens.review(runtime, token, audiences)
    if reviewed is None:
        return {"error": "invalid bearer token", "user": {}}
    identity, meant = reviewed
    return {"authenticated": True, "user": _user(identity), "audiences": meant}


def _user(identity: Identity) -> JsonObject:
    shown: JsonObject = {"username": identity.actor.user}
    if identity.uid:
        shown["uid"] = identity.uid
    shown["groups"] = list(identity.actor.groups)
    if identity.extra:
        shown["extra"] = {key: list(values) for key, values in identity.extra.items()}
    return shown
