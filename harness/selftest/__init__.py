"""Does the verdict cry wolf, and does it sleep? Compare what is the same, and what is sabotaged."""
