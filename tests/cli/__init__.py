"""Tests of dsmigrate.cli."""
