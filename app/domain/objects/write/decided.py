"""The answer of `decide`: drafts of events, and the object as the client gets it."""

import msgspec

from app.domain.log import Draft
from app.domain.values.json_tree import JsonObject


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What a command does.

    No drafts: nothing changes, or it was a dry run. `tree` is the answer in the storage version;
    where it is the tree of the last draft it gets its resourceVersion when that draft is sealed.
    `created` tells the API to answer 201.
    """

    drafts: tuple[Draft, ...] = ()
    tree: JsonObject | None = None
    warnings: tuple[str, ...] = ()
    created: bool = False
