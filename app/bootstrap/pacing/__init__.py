"""Live processing of histories: paced replays inside a server, the judges of `redra watch-over`."""
