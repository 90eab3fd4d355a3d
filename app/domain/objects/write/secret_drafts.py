"""Drafts on their way to the log: values of Secrets are protected, the answer keeps them."""

from collections.abc import Sequence

import msgspec

from app.domain.log import Draft, Event
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.write.staging import StagedObjects


def protected(
    drafts: Sequence[Draft], staged: StagedObjects, cipher: SecretCipher | None
) -> Sequence[Draft]:
    """The drafts as they are stored; the given ones when no Secret is among them."""
    if cipher is None:
        return drafts
    # A loop, for it is passed by every write: a generator costs several times as much.
    for draft in drafts:
        if secret_values.is_secret(draft.key):
            break
    else:
        return drafts
    stored: list[Draft] = []
    for draft in drafts:
        if secret_values.is_secret(draft.key):
            event = staged.event(draft.key)
            before = None if event is None else event.object
            tree = secret_values.protected(draft.key, draft.tree, cipher, before)
            draft = msgspec.structs.replace(draft, tree=tree)
        stored.append(draft)
    return stored


def number(drafts: Sequence[Draft], events: Sequence[Event]) -> None:
    """Give the trees of the drafts, which callers get, the revisions of their events."""
    for draft, event in zip(drafts, events, strict=True):
        metadata = draft.tree.get("metadata")
        if isinstance(metadata, dict):
            metadata["resourceVersion"] = str(event.revision)
