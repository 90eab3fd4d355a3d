"""Fleets as data: nodes with devices generated from a profile and a seed, and their incidents."""
