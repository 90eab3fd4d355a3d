"""A history handed on: as a test, as manifests, as a case of the allocator, without its names.

Pure functions from steps to texts and trees. Belongs here: what a form looks like, and which names
a redaction replaces. Does not belong here: running anything, and files.
"""
