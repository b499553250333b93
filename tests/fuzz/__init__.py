"""Inputs that nobody writes: mutated configs, scripts, YAML and launch files, through the commands that read them."""
