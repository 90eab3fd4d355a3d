"""A moment that cannot be is named as the command has it."""

import pytest

from app.bootstrap import stores
from app.bootstrap.answers import rehearsals
from app.domain.errors import InputError
from app.settings import Settings


async def test_moment_of_a_rehearsal_is_named_with_its_history():
    store = stores.memory_store()
    await store.log.create_history("prod", seed=1, settings={}, created=0)
    with pytest.raises(InputError, match=r"^prod@9999: ") as caught:
        await rehearsals.rehearse(store, Settings(), "prod", "1.37", "9999")
    assert "--at" not in str(caught.value)
