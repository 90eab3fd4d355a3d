"""Decide replay: the controllers run over the outside inputs of a recording, as often as needed.

Belongs here: reading the recording, running, naming what a run makes. Does not belong here: what
the runs are compared by (`app.analysis.replay`). Nothing is written to a history.
"""
