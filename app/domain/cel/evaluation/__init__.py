"""Compilation of a checked tree to code, and its evaluation."""
