"""Workloads of classes, tenants and programs, and the figures promised about them."""
