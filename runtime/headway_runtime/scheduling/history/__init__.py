"""What becomes of a request, and why it took as long as it did."""
