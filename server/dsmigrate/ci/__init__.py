"""What runs in CI: the event that started it, the report, and where the report goes."""
