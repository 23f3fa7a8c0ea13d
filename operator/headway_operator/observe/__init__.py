"""Reads the world: the cluster's objects, sidecars, activators, metrics and the clock."""
