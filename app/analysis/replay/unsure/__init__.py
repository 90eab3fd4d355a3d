"""The uncertainty of a recording: the differences that it leaves undecided.

Belongs here: unrecorded stretches, times that cannot be right, and recorded facts that neither can
explain. Does not belong here: hypotheses about what was recorded.
"""
