"""Explanations: trees of reasons why an object is in its state, and their text."""
