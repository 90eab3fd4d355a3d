"""Properties of a recording: its release, its fidelity report, and its uncertainty."""
