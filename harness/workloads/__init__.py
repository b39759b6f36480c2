"""What is timed and counted: a kernel, its inputs, its launch, the bytes it moves, its check."""
