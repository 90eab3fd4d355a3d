"""Readers of what kubectl prints for people: tables and descriptions. `mixtures` finds them."""
