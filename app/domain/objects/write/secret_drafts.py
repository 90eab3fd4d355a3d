"""Protection of Secret values in drafts before they are stored; the response keeps the values."""

from collections.abc import Sequence

import msgspec

from app.domain.log import Draft
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.write.staging import StagedObjects


def protected(
    drafts: Sequence[Draft], staged: StagedObjects, cipher: SecretCipher | None
) -> Sequence[Draft]:
    """The drafts to store; the same sequence if it contains no Secret."""
    if cipher is None:
        return drafts
    # A loop, because every write runs this code: a generator costs several times as much.
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
