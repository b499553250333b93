"""Tests of dsmigrate.migration."""
