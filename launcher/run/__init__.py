"""One run: its folder, its process on the host, its log, its progress."""
