"""Files through which sidecar and engine talk. Standard library only: both sides import it."""

SOCKET_NAME = "sidecar.sock"
"""Name of the sidecar's unix socket, next to the files."""
