"""The HTTP server: connections, requests and answers, bounds, health, metrics."""
