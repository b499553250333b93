"""The course of the learning rate."""
