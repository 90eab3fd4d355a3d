"""Protobuf field numbers of the kinds, for bodies that typed Go clients send and read."""
