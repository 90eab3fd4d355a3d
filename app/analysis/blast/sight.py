"""The part of a state from which a reader with few rights gets an answer."""

from collections.abc import Callable
from dataclasses import replace

from app.analysis.blast.world import Frozen
from app.domain.log import ObjectKey
from app.domain.values import api_groups, api_resources

UNSEEN = "objects that you may not read, such as quotas or templates of claims, take no part"
"""The note to an answer for a reader with few rights."""

_TOLD = frozenset((api_resources.RESOURCE_CLAIM_TEMPLATES, api_resources.RESOURCE_QUOTAS))
_TOLD_GROUPS = frozenset((api_groups.APPS, api_groups.BATCH, api_groups.POLICY))
"""Kinds and groups of which an answer tells, beside those that it is worked out from.

Policies and what they refer to are none of them: they refuse writes of people who may not read
them, and are not quoted.
"""


def as_seen(frozen: Frozen, sees: Callable[[ObjectKey], bool]) -> Frozen:
    """The state without the objects that a reader may not see and an answer would tell of."""
    events = tuple(one for one in frozen.events if not _is_told(one[0]) or sees(one[0]))
    return replace(frozen, events=events)


def _is_told(key: ObjectKey) -> bool:
    return key.group in _TOLD_GROUPS or (key.group, key.resource) in _TOLD
