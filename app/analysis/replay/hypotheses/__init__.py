"""Hypotheses about a difference: one thing that could have been otherwise there.

A hypothesis is a change of one run: the order of two acts about one object, an attempt that was or
was not made, a switch. Only its run shows whether a hypothesis holds.

Belongs here: what a hypothesis is, and which ones are proposed. Does not belong here: whether one
holds (`proving`), and the order of two acts in a recording (`races`).
"""
