"""Measurements as rates and ratios; see bench/README.md. Not tests: nothing here fails on time."""
