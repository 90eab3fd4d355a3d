"""The uncertainty of a recording: which differences it leaves undecided, and which not.

Belongs here: unrecorded stretches, times that cannot be right, and recorded facts that neither can
explain. Does not belong here: hypotheses about what was recorded.
"""
