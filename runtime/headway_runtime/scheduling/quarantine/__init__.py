"""Which requests break the engine: who is suspected after a crash, who is tried, who is refused."""
