"""The nightly gate: tonight's times against the promoted baseline of this GPU, and nothing else."""
