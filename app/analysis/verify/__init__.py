"""Verification of a history: decisions made again, allocations audited, and invariants."""
