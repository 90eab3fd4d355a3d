"""The scheduler's plug-ins that have a thought of their own, under upstream's names."""
