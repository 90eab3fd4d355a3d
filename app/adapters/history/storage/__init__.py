"""The stores of API servers: etcd snapshots and kine tables."""
