"""Folders of plain files as one zip archive, and folders of such archives."""

import io
import zipfile
from pathlib import Path

from app.adapters import whole_files
from app.domain.errors import InputError

_TIME = (1980, 1, 1, 0, 0, 0)
_EXECUTABLE = 0o111


def pack(folder: Path) -> Path:
    """Write the files of a folder into an archive beside it. Equal files give equal bytes."""
    path = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(f"{folder.name}/{file.name}", _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = file.stat().st_mode << 16
            archive.writestr(entry, file.read_bytes())
    return path


def unpack(content: bytes, path: Path, *, bytes_max: int) -> None:
    """Make a new folder with the files of an archive, as a whole or not at all.

    Raises InputError for an archive of more than `bytes_max` bytes, and for one that `pack` did
    not make. Raises OSError when the folder cannot be made.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, whole_files.making(path) as folder:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > bytes_max:
                raise InputError(f"the server's folder has more than {bytes_max} bytes")
            for entry in entries:
                _, _, name = entry.filename.partition("/")
                if not name or name != Path(name).name or (folder / name).exists():
                    raise InputError(f"the server's folder has a file {entry.filename[:64]!r}")
                file = folder / name
                file.write_bytes(archive.read(entry))
                if entry.external_attr >> 16 & _EXECUTABLE:
                    file.chmod(0o755)
    except (zipfile.BadZipFile, EOFError, ValueError) as problem:
        raise InputError(f"the server's folder cannot be unpacked: {problem}") from problem
