"""The generated pages say what the code says."""

import pytest

from docs import generate


@pytest.mark.parametrize("page", sorted(generate.pages()))
def test_reference_page_is_up_to_date(page: str) -> None:
    assert (generate.FOLDER / page).read_text() == generate.pages()[page], "run `make docs`"
