"""Answers for a service while none of its engines does: holds requests, and passes them on."""
