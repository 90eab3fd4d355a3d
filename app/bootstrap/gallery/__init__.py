"""The gallery of incidents.

Its files (`incident_files`), the runs of incidents (`playing`), and the scan of histories for them
(`scanning`).
"""
