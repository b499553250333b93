"""Machine facts about every DeepSpeed release, from DeepSpeed's config code: ``python -m dsmigrate.derivation``."""
