"""Tests of dsmigrate.derivation."""
