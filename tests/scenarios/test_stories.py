"""What does the user see? Each `*.story` file is told again and must read the same.

`REDRA_REWRITE=1 pytest tests/scenarios` writes the transcripts anew; then read the diff.
"""

import os
from pathlib import Path

import pytest

from tests.scenarios import stories

FOLDER = Path(__file__).parent / "controllers"
FILES = sorted(FOLDER.glob("*.story"))


def test_there_are_stories():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_story_reads_the_same(path):
    told = stories.tell(path)
    if os.environ.get("REDRA_REWRITE") == "1":
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")
