"""Paced replays inside a server: what is wanted, who plays, and the keys of the terminal."""
