"""Number formats, loss scale, and how gradients are reduced."""
