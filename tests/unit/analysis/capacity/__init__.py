"""Tests of what still fits."""
