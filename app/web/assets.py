"""The static files of pages, style and script, served with a hash of their content."""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from app.web.links import STATIC

TYPES = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A static file with its content type. `tag` changes with the content."""

    name: str
    content: bytes
    content_type: bytes
    tag: str

    @property
    def url(self) -> str:
        """The URL of the file. New content has a new URL, so clients can cache it forever."""
        return f"{STATIC}{self.name}?v={self.tag}"


@lru_cache(maxsize=1)
def all_assets() -> dict[str, Asset]:
    """All static files, by name."""
    assets: dict[str, Asset] = {}
    for entry in sorted(files("app.web").joinpath("static").iterdir(), key=lambda one: one.name):
        name, _, suffix = entry.name.rpartition(".")
        if name and suffix in TYPES:
            content = entry.read_bytes()
            assets[entry.name] = Asset(
                name=entry.name,
                content=content,
                content_type=TYPES[suffix],
                tag=sha256(content).hexdigest()[:16],
            )
    return assets
