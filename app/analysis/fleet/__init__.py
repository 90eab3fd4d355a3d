"""Fleets as data: nodes with devices made from a profile and a seed, and their incidents."""
