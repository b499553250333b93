"""The language server: thin handlers between the protocol and ``dsmigrate.editing``.

``dsmigrate server`` and ``deepspeed-language-server`` start it; ``main.py`` is the way in.
"""
