"""Nodes and what runs on them, what a pod asks for, and the filters and scores of both."""
