"""Benchmarks of the operator at the size it is made for."""
