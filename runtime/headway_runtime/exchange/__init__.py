"""Files through which sidecar and engine talk. Standard library only: both sides import it."""
