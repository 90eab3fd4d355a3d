"""Whether `why` says truly which quota keeps a pod's claim from being made, and what would help."""
