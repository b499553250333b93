"""The generated part of ``docs/``: one page per migration code, and their index."""
