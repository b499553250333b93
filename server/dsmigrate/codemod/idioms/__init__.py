"""What becomes of the events of a training: one idiom a file, each a pure function from facts to decisions."""
