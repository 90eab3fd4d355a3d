"""Requests of commands to servers: the queries, and the server that answers them."""
