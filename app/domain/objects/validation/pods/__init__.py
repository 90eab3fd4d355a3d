"""Validation of pod specs, also of those inside templates."""
