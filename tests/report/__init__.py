"""Tests of dsmigrate.report."""
