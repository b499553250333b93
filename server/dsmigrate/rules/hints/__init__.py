"""DS95x and above: what changed between releases, and advice about speed and memory."""
