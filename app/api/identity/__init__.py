"""Who sends a request: client certificates, tokens, service accounts."""
