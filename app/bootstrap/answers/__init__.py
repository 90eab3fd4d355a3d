"""Answers about histories for the command line: explanations, blast radius, differences."""
