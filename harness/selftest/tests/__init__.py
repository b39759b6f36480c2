"""Tests of the self-test, on a GPU that is none."""
