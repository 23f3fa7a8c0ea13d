"""Who is let in: how long each class would wait, and what is refused for it."""
