"""The identity of the sender of a request: client certificates, tokens, service accounts."""
