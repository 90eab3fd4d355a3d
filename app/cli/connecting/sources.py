"""Sources that are a history or files, for every command that takes both.

A history takes precedence: `prod` is the history of that name if it exists, `./prod` is the folder.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import console
from app.domain.errors import InputError, LogError

if TYPE_CHECKING:
    from app.settings import Settings

_ENDINGS = (".zip", ".redra", ".log", ".json", ".jsonl", ".yaml", ".yml", ".txt", ".gz", ".tar")
"""Ends of names that a user hardly gives to a history."""


def files(sources: Sequence[str], settings: "Settings") -> tuple[Path, ...]:
    """The sources as files; empty if the source is a history. Raises InputError for a mixture."""
    there = tuple(Path(source) for source in sources if Path(source).exists())
    if not there:
        if len(sources) > 1:
            raise InputError(
                "only one history can be read at a time, and there are no such files",
                place=", ".join(sources),
            )
        _check_no_file(sources[0], settings)
        return ()
    if len(there) < len(sources):
        missing = next(source for source in sources if not Path(source).exists())
        raise InputError("there is no such file", place=missing)
    if len(sources) > 1 or "/" in sources[0]:
        return there
    (name,) = sources
    noun = "folder" if there[0].is_dir() else "file"
    try:
        is_history = _is_history(name.partition("@")[0], settings)
    except (InputError, LogError) as problem:
        console.note(f"{name} is read as the {noun} ./{name}; for histories: {problem}")
        return there
    if is_history:
        console.note(f"{name} is read as the history; the {noun} of that name is ./{name}")
        return ()
    if there[0].is_dir():
        console.note(f"{name} is read as the folder ./{name}, because there is no such history")
    return there


def _check_no_file(source: str, settings: "Settings") -> None:
    """Raises InputError for a source that can only be a file, which is missing."""
    if "/" in source:
        raise InputError("there is no such file", place=source)
    if source.endswith(_ENDINGS) and not _is_history(source, settings):
        raise InputError("there is no file and no history of this name", place=source)


def _is_history(name: str, settings: "Settings") -> bool:
    """True if the history exists. Raises LogError, InputError."""
    from app.bootstrap import stores

    if not settings.database_url and not (settings.data / "postgres").exists():
        return False

    async def find() -> bool:
        async with stores.open_store(settings) as store:
            return await store.log.find_history(name) is not None

    return console.run(find)
