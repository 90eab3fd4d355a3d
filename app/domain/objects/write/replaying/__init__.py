"""Replay of recorded events in a history to which clients write: `deciding` decides the result of
an event, `rebasing` merges it with changes of clients."""
