"""Tenants: what each was served, and whose turn it is."""
