"""Readers and writers of the formats of tools, one module per format."""
