"""Readers of the stores of API servers: etcd snapshots and kine tables."""
