"""The gallery of incidents: its files (`incident_files`) and runs of incidents (`playing`)."""
