"""Sweeps: plans of matrices of runs, the measures of a run, and the comparison of runs.

Pure. Does not belong here: where cells run, and files.
"""
