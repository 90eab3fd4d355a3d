"""The paths of the shared vectors, corpus and recordings.

A bare clone has none of them: tests that read them are skipped with the reason. With CI=true a
missing folder is a failure, because otherwise no test would check fidelity.
"""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def shared_root() -> Path:
    """The folder that holds `conformance`, `corpus`, `histories` and `openapi`."""
    named = os.environ.get("REDRA_SHARED")
    return Path(named) if named else REPOSITORY.parent / "shared"


def shared_path(*parts: str) -> Path:
    """The path of a shared file or folder; skips the calling test when it is absent."""
    if parts[:1] == ("conformance",) and os.environ.get("REDRA_CONFORMANCE"):
        path = Path(os.environ["REDRA_CONFORMANCE"], *parts[1:])
    else:
        path = shared_root().joinpath(*parts)
    if path.exists():
        return path
    reason = f"{'/'.join(parts)} is not beside this checkout (set REDRA_SHARED to its folder)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def shared_is_present(*parts: str) -> bool:
    """True when the file or folder can be read; for choosing parameters while collecting."""
    if parts[:1] == ("conformance",) and os.environ.get("REDRA_CONFORMANCE"):
        return Path(os.environ["REDRA_CONFORMANCE"], *parts[1:]).exists()
    return shared_root().joinpath(*parts).exists()
