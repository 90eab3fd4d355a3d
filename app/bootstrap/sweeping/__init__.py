"""Sweeps: the histories of a plan as bundles (`histories`), the run of one cell (`cells`).

The run of all cells is in `running`, the output in `tables`. `executors` runs tasks here or on
Dask.
"""
