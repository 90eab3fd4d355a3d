"""Parsing of text to a syntax tree."""
