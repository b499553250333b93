"""Tests of dsmigrate.files."""
