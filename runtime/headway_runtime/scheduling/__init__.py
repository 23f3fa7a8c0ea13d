"""Decides what an engine runs next. Pure: values in, values with reasons out; no I/O, no clock."""
