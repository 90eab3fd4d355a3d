"""The scheduler's plug-ins that have their own modules, under upstream's names."""
