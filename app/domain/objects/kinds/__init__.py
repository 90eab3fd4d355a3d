"""Rules of single kinds, which the writes of those kinds follow."""
