"""OpenAPI documents of what is served."""
