"""What a recording leaves unsure, and what it leaves sure all the same.

Belongs here: what is not recorded and from when to when, times that cannot be right, and what was
recorded that neither can have caused. Does not belong here: hypotheses about what was recorded.
"""
