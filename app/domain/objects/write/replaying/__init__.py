"""Replay of recorded events beside writes of clients.

`deciding` decides the result of an event, `rebasing` merges it with changes of clients.
"""
