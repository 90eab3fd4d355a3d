"""Paced replays: a recorded history is shown again, event by event, as if it happened now.

Belongs here: the pace (`pace`), the times that are shown (`shifting`), the history in which it is
shown (`stage`) and who plays (`player`). What becomes of one recorded event where clients write as
well is decided in `app/domain/objects/write/replaying`.
"""
