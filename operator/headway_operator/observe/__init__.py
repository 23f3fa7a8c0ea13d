"""Reads: cluster objects and sidecars -> one immutable snapshot per service."""
