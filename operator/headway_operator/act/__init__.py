"""Writes: server-side apply, policy push, status, events, leadership."""
