"""Schemas of kinds, and processing of trees by schema: decoding, pruning, defaults, versions."""
