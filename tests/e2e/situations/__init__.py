"""Scripts in which DeepSpeed reads keys that no config alone brings it to read: a model with experts, a data set, ….

``working`` says which keys each script is for, and a config with which it runs through. ``judge`` runs them.
"""
