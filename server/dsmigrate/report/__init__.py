"""The outcome of a migration as text for people and as JSON for programs."""
