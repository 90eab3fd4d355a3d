"""What a text means as a moment of a history."""

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.errors import InputError, RevisionTooLarge
from app.domain.values.timestamps import Instant, parse
from app.service import moments


@pytest.mark.parametrize("text", ["", "²", "-1", "yesterday", "9" * 19, "2026-02-30"])
def test_text_that_means_nothing_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError, match="neither a revision nor an instant"):
        moments.check(text)


@pytest.mark.parametrize("text", ["0", "42", "2026-01-02T03:04:05Z", "2026-01-02"])
def test_revisions_and_instants_are_moments(text: str) -> None:
    moments.check(text)


async def test_empty_history_has_revision_0_and_no_other() -> None:
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=0, settings={}, created=Instant(0))
    assert await moments.find_revision(log, info, "0") == 0
    with pytest.raises(RevisionTooLarge, match="history 'h' has no revision 1: it ends at 0"):
        await moments.find_revision(log, info, "1")


async def test_time_of_an_instant_is_the_instant() -> None:
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=0, settings={}, created=Instant(0))
    text = "2026-01-02T03:04:05Z"
    revision = await moments.find_revision(log, info, text)
    assert await moments.find_time(log, info, text, revision) == parse(text)
    assert await moments.find_time(log, info, "0", revision) == 0
