"""The effect of a proposed change: counts and lists of pods, claims, devices, pools and classes."""
