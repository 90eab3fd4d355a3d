"""The HTTP server: connections, requests and responses, bounds, health, metrics."""
