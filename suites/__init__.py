"""The claims, one test each, and what the kernels behind them ask of the hardware."""
