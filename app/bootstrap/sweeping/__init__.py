"""Sweeps: the histories of a plan as bundles (`histories`), one cell run (`cells`), all of them
(`running`), and what is written of them (`tables`). `executors` runs tasks here or on Dask.
"""
