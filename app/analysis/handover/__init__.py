"""Exports of a history: as a test, as manifests, as a case of the allocator, or without names.

Pure functions from steps to texts and trees. Belongs here: the format of each export, and which
names a redaction replaces. Does not belong here: running anything, and files.
"""
