"""Stands in for the timm library, of which the examples use no more than this."""
