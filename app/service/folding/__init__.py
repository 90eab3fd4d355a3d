"""Folding of a log into views that are kept: rows in tables, and states from which a fold goes on.

Belongs here: the projector (`projecting`), the rebuilding of rows from the log (`rebuild`), and the
kept states of views (`snapshots`). The effect of an event on a view is defined in `projections`.
"""
