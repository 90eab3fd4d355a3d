"""The result of `decide`: drafts of events, and the object for the client."""

import msgspec

from app.domain.log import Draft
from app.domain.values.json_tree import JsonObject


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command.

    It has no drafts if nothing changes or for a dry run. `tree` is the response in the storage
    version; if it is the tree of a draft, it gets the resourceVersion of the sealed event.
    With `created` the API responds 201.
    """

    drafts: tuple[Draft, ...] = ()
    tree: JsonObject | None = None
    warnings: tuple[str, ...] = ()
    created: bool = False
