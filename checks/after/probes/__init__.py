"""What is asked of a running server, and how each reply is judged."""
