"""Texts that were read and kept in one file, each below a line `@ NAME`."""

import os
from collections.abc import Iterable
from pathlib import Path

HEADING = "@ "


def kept(file: Path) -> dict[str, str]:
    """The texts of a file, by name."""
    text = f"\n{file.read_text(encoding='utf-8')}" if file.exists() else ""
    parted = (block.partition("\n") for block in text.split(f"\n{HEADING}")[1:])
    return {name: lines.strip("\n") for name, _, lines in parted}


def check(file: Path, name: str, text: str, names: Iterable[str]) -> None:
    """Compares a text with the kept one. With `REDRA_REWRITE=1` it is kept instead."""
    texts = kept(file)
    if os.environ.get("REDRA_REWRITE") == "1":
        texts[name] = text
        blocks = (f"{HEADING}{each}\n{texts[each]}\n" for each in names if each in texts)
        file.write_text("\n".join(blocks), encoding="utf-8")
    assert text == texts[name]
