"""What the tests of a module keep is freed for the next module."""

import weakref
from unittest import mock

from tests.kept import Kept


class Made:
    """Something that holds itself, which only the garbage collector frees."""

    def __init__(self):
        self.itself = self


def test_what_was_kept_is_freed():
    with mock.patch.object(Kept, "_all", []):
        kept, other = Kept(), Kept()
        kept["a"] = Made()
        held = weakref.ref(kept["a"])
        Kept.forget()
        assert (len(kept), len(other), held()) == (0, 0, None)
        kept["a"] = Made()
        assert len(kept) == 1
