"""Questions about identity and rights: posted, answered, not stored.

Whoever is let in may do everything, so access reviews say yes. Parity: api-surface.md 2, 11, 14.
"""

from app.api import bodies
from app.api.authentication import Credentials
from app.api.discovery import Review
from app.api.limits import ApiLimits
from app.api.messages import Answer, Request
from app.api.representations import encode
from app.domain.errors import BadRequest
from app.domain.log import Actor
from app.domain.objects.decode import Bounds
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

_REASON = "everybody who is let in may do everything"
_EVERYTHING: JsonObject = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


async def answer(
    request: Request, review: Review, actor: Actor, credentials: Credentials, limits: ApiLimits
) -> Answer:
    """The review with its status filled in. Raises BadRequest."""
    text = await request.body(bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max)
    bounds = Bounds(bytes_max=limits.body_bytes_max, depth_max=limits.depth_max)
    tree: JsonObject = {}
    if text:
        decoded = bodies.decode_object(text, bodies.media_type(request), bounds, kind=review.kind)
        tree = decoded.value
    if tree.get("kind", review.kind) != review.kind:
        raise BadRequest(f"the body must be a {review.kind}")
    tree["kind"], tree["apiVersion"] = review.kind, f"{review.group}/v1"
    metadata = tree.get("metadata")
    kept = metadata if isinstance(metadata, dict) else {}
    tree["metadata"] = kept | {"creationTimestamp": None}
    tree["status"] = _status(review, tree, actor, credentials)
    return Answer(encode(tree), status=201)


def _status(review: Review, tree: JsonObject, actor: Actor, credentials: Credentials) -> JsonObject:
    match review.kind:
        case "SelfSubjectReview":
            return {"userInfo": _user(actor)}
        case "SelfSubjectRulesReview":
            return _EVERYTHING
        case "TokenReview":
            known = credentials.tokens.get(json_tree.text(tree, "spec", "token"))
            if known is None:
                return {"authenticated": False, "error": "the token is not known", "user": {}}
            return {"authenticated": True, "user": _user(known)}
    return {"allowed": True, "reason": _REASON}


def _user(actor: Actor) -> JsonObject:
    return {"username": actor.user, "groups": list(actor.groups)}
