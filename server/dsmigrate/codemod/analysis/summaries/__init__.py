"""What libraries do, as tables: what a class makes, what a function and a method give and bring about.

A new library is an entry here. Names are qualified as a script imports them; ``registry`` joins other paths to the same
thing.
"""
