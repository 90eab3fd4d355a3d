"""Protobuf field numbers of the kinds, for the request bodies of typed Go clients."""
