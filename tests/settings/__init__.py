"""Tests of dsmigrate.settings."""
