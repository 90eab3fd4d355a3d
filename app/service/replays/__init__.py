"""Replays of a history: fold it, verify it, decide it again."""
