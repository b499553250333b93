"""Tests of dsmigrate.docs."""
