"""What is written: the modules of a project, their imports and scopes. Knows syntax trees, and nothing of training."""
