"""Validation of pod specs, in pods and in pod templates."""
