"""Schemas of kinds, and the processing of trees by schema: decoding, pruning, defaults,
versions."""
