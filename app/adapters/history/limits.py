"""Bounds for reading untrusted recordings. Parity: history-formats.md 3.7."""

from dataclasses import dataclass

from app.domain.errors import InputError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class BoundReached(InputError):
    """A source exceeds a bound.

    Unlike other problems, this never leads to an attempt to read the source as another format.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """The bounds of an import. At a bound the import ends with an InputError.

    `unpacked_bytes_max` bounds one unpacked source; `ratio_max` bounds the unpacked bytes per
    packed byte and applies beyond `ratio_free_bytes` unpacked bytes. Up to `zeros_free_bytes` bytes
    of zero do not count for it: databases and their logs are made with room for what comes, such as
    the 64 MiB of each log of etcd. `line_bytes_max` bounds one
    line of a log (an audit event holds an object twice), `object_bytes_max` one object as JSON,
    `document_bytes_max` one JSON document or YAML file that must be read as a whole. `depth_max`
    bounds nesting, `yaml_expanded_nodes_max` the nodes of one YAML document after its aliases are
    followed. `sources_max` bounds the files of one import, `path_depth_max` the folders above a
    file, `archive_entries_max` the entries of all archives, `archive_depth_max` the nesting of
    archives, `records_max` the records of one import, `refusals_max` the refusals that are listed
    (all are counted).
    """

    unpacked_bytes_max: int = 16 * GIB
    ratio_max: int = 100
    ratio_free_bytes: int = 16 * MIB
    zeros_free_bytes: int = 512 * MIB
    line_bytes_max: int = 16 * MIB
    object_bytes_max: int = 3 * MIB
    document_bytes_max: int = 512 * MIB
    depth_max: int = 100
    yaml_expanded_nodes_max: int = 5_000_000
    sources_max: int = 20_000
    path_depth_max: int = 16
    archive_entries_max: int = 100_000
    archive_depth_max: int = 4
    records_max: int = 50_000_000
    refusals_max: int = 1_000


DEFAULT_LIMITS = ImportLimits()
"""The bounds that apply unless settings override them."""
