"""Every bound of the HTTP edge, by name; bootstrap fills them from the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """Bounds of one server. Sizes in bytes, times in seconds.

    `body_bytes_max` and `body_seconds_max` bound what a client sends, `yaml_depth_max` and
    `yaml_aliases_max` what a YAML text may unfold to, `patch_operations_max` a JSON patch.
    `watchers_max` watches run at once; each ends after a random time between
    `watch_seconds_min` and `watch_seconds_max` unless it asks for less, and gets a bookmark every
    `bookmark_seconds`. A continued list finds its snapshot among the `snapshots_max` newest ones in
    memory, else in the log. `frames_max` encoded watch events are shared between watchers.
    A list that asks for a later revision waits `revision_wait_seconds`. Answers from
    `compress_from_bytes` on are compressed for clients that accept it (0: never).
    """

    body_bytes_max: int = 3 * 1024 * 1024
    body_seconds_max: float = 60.0
    yaml_depth_max: int = 100
    yaml_aliases_max: int = 1_000
    json_depth_max: int = 200
    patch_operations_max: int = 10_000
    query_bytes_max: int = 64 * 1024
    watchers_max: int = 5_000
    watch_seconds_min: float = 1_800.0
    watch_seconds_max: float = 3_600.0
    bookmark_seconds: float = 60.0
    snapshots_max: int = 32
    frames_max: int = 8_192
    revision_wait_seconds: float = 3.0
    compress_from_bytes: int = 128 * 1024
    log_page_max: int = 5_000
    send_seconds_max: float = 30.0
