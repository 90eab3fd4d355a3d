"""The author of an event as a timeline shows it."""

import pytest

from app.domain.log.records import IMPORTER_USER, shown_author


@pytest.mark.parametrize(
    ("user", "kind", "shown"),
    [
        ("alice", "PodDeleted", "alice"),
        (IMPORTER_USER, "PodDeleted", "unrecorded"),
        (IMPORTER_USER, "HistoryImported", IMPORTER_USER),
        (IMPORTER_USER, "GapObserved", IMPORTER_USER),
    ],
)
def test_import_is_the_author_of_what_it_states_and_of_nothing_else(user, kind, shown):
    assert shown_author(user, kind) == shown
