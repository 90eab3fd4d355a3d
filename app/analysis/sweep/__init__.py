"""Matrices of runs: the plan of one, what a run comes to in numbers, and how runs compare.

Pure. Does not belong here: where cells run, and files.
"""
