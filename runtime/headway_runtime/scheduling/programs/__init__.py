"""Programs of requests: what their calls declare, and when each call is due."""
