"""Tests of the instruction counts; none needs a GPU."""
