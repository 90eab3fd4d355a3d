"""The incidents that come with the program, read from its package or from the checkout."""

from functools import lru_cache
from importlib import resources
from pathlib import Path

from app.analysis import scope
from app.analysis.incidents import incident as incidents
from app.analysis.incidents.incident import Exhibit, Incident
from app.bootstrap.manifests import read_documents
from app.domain.errors import InputError

INSTALLED = "incidents"
"""Folder of the installed package; in a checkout it is `examples/incidents`."""

DATA = "incident.yaml"
STORY = "README.md"

_KEPT_MAX = 128
"""The most incidents in memory, more than the gallery has."""


def folder() -> Path:
    """The folder of the incidents."""
    package = Path(str(resources.files("app")))
    installed = package / INSTALLED
    return installed if installed.is_dir() else package.parent / "examples" / "incidents"


def names() -> list[str]:
    """The names of all incidents, sorted."""
    return sorted(path.parent.name for path in folder().glob(f"*/{DATA}"))


@lru_cache(maxsize=_KEPT_MAX)
def incident(name: str) -> Incident | None:
    """An incident without its story; None if there is none with this name."""
    try:
        return read(name).incident
    except InputError:
        return None


def read(name: str) -> Exhibit:
    """An incident with its story. Raises InputError for an unknown name."""
    if name not in names():
        cure = scope.nearest(name, names()) or "`redra incidents list` lists all names"
        raise InputError(f"there is no incident {name!r}", cure=cure)
    path = folder() / name / DATA
    ((place, tree),) = read_documents(path)
    return Exhibit(
        name=name,
        incident=incidents.parse(tree, place),
        story=(folder() / name / STORY).read_text(encoding="utf-8"),
    )
