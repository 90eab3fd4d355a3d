"""What a proposed change would do: counts and lists of pods, claims, devices, pools and classes."""
