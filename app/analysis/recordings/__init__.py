"""What a recording is, and what it cannot tell: its release, its fidelity report."""
