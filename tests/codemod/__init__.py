"""Tests of dsmigrate.codemod."""
