"""The forms, one module for each way to read or write."""
