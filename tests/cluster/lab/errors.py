"""The one exception that the lab raises on purpose."""


class LabError(Exception):
    """Something the person at the keyboard can put right; the message names the remedy."""
