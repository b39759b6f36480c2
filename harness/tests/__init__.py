"""Tests of the harness that need no device: synthetic samples, a fake GPU, runs within a run."""
