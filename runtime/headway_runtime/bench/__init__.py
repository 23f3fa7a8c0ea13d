"""Measures an engine under open-loop load: ours against stock settings, on the same requests."""
