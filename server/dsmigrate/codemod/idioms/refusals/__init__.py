"""What is not converted, and why."""
