"""One test module per step of the codemod."""
