"""What a definition says about one version of its kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain.values.json_tree import JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where the parts of a Scale stand in an object; `selector` is empty when there is none."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomVersion:
    """One version: its schema as written, its columns, and the warning that requests for it get."""

    name: str
    schema: JsonView = field(default_factory=dict)
    columns: tuple[JsonView, ...] = ()
    scale: Scale | None = None
    has_rules: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """All versions of a custom kind by name.

    `revision` is that of the definition: objects that were written before it may have another
    version or lack defaults.
    """

    versions: Mapping[str, CustomVersion]
    list_kind: str
    revision: int
    is_terminating: bool = False
