"""What converted scripts import: one file ``ds_compat.py`` of a project, put together of the parts in this folder.

A part is a module that imports torch and DeepSpeed, and is never imported here: ``assemble`` reads it as text.
"""
