"""Time: how long steps take, when an engine is free, and when tokens are due."""
