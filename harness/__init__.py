"""Everything that is not a claim: devices, counting, timing, verdicts, baselines, reports."""
