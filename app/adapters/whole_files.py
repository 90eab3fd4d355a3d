"""Files that are there as a whole or not at all."""

import secrets
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Write a file, in the place of what is there. Raises OSError; what was there stays then.

    Several may write it at the same time: the last one counts. What is no file, such as a pipe, is
    written to as it is.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = path.resolve()
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        partial.write_bytes(content)
        if path.exists():
            partial.chmod(path.stat().st_mode)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
