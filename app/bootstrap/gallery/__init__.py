"""The gallery of incidents.

Its files (`exhibits`), the runs of incidents (`playing`), and the scan of histories for them
(`scanning`).
"""
