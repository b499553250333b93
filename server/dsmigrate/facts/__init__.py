"""From hand-written documentation and derived facts to what the package loads and to the JSON Schemas.

``python -m dsmigrate.facts`` writes every generated file under ``schemas/deepspeed``; ``--check`` says what is stale.
"""
