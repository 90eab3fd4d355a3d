"""Recorded events that are shown again where clients write too: `deciding` says what becomes of an
event, `rebasing` joins it with what clients have changed."""
