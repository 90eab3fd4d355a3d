"""The published schemas, loaded from data files of the package `kubernetes-validate`.

The package contains the definitions of every Kubernetes release. Only its files are used; the
package is never imported. Reading takes a few milliseconds, because definitions are decoded on
demand.
"""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from app.domain.errors import InputError
from app.domain.objects.schema.structural import Schemas

PACKAGE = "kubernetes_validate"


@lru_cache(maxsize=4)
def load(release: str) -> Schemas:
    """The schemas of a release such as `1.37`; read once per process.

    Raises InputError when the package is missing or has no file for the release.
    """
    path = _folder() / f"v{release}.0-local" / "_definitions.json"
    try:
        document = path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"the schemas of Kubernetes {release} cannot be read: {problem.strerror}",
            place=str(path),
            cure=f"install a version of {PACKAGE.replace('_', '-')} that has this release",
        ) from problem
    return Schemas(document)


def _folder() -> Path:
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    if not places:
        raise InputError(
            f"the package {PACKAGE.replace('_', '-')} is not installed",
            cure="install redra with its dependencies",
        )
    return Path(places[0]) / "kubernetes-json-schema"
