"""Rows that are answered wrong today, with what is said: a repair is noticed.

Each is a recording, an alteration and a mode; the value is the verdict that redra gives.
"""

OPEN: dict[tuple[str, str, str], str] = {
    ("b-mig-partitions", "hole_60_95", "verify"): "fails",
}
