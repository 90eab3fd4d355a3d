"""Decide replay: runs the controllers over the inputs of a recording, as often as needed.

Belongs here: reading the recording, the runs, and the names of objects that a run makes. Does not
belong here: the comparison of runs (`app.analysis.replay`). Nothing is written to a history.
"""
