"""Runs in a process of its own: one release's config code among stubs, its facts as JSON on a pipe."""
