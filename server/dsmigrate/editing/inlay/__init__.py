"""Inlay hints, one module for each kind; ``dsmigrate.editing.hints`` asks them all."""
