"""Histories as they go on: paced replays inside a server, and the judges of `redra watch-over`."""
