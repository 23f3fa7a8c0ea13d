"""What is remembered from one look at a service to the next."""
