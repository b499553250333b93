"""The same settings elsewhere: ``ds_config.json``, Accelerate's YAML and plugin, dictionaries, the Trainer's arguments.

Every form is read into ``Settings``, a DeepSpeed config with what stands around it, and written from them. ``job`` does
a whole conversion; ``forms`` has one module for each way to read or write.
"""
