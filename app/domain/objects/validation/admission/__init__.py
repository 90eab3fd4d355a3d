"""Validation of admission webhooks and policies."""
