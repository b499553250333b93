"""Which files a training is spread over: local imports are looked up and read as text, nothing is imported or run."""
