"""Paced replays: a recorded history is shown again, event by event, as if it happened now.

Belongs here: the pace (`pace`), the times that are shown (`shifting`), the history in which events
are shown (`stage`), and the player (`player`). How a recorded event is shown where clients have
written is decided in `app/domain/objects/write/replaying`.
"""
