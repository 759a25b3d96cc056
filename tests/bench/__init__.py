"""Benchmarks: every figure is a ratio measured in one run, beside its baseline. Run them by `askgate bench`."""
