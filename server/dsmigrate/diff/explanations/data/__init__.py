"""Which samples come when: loaders, curricula, dropped tokens."""
