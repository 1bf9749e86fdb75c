"""One run: its folder, its process on the host, its log copy, its progress and its readiness."""
