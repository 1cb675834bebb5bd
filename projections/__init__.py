"""
Folds of the log: what its events mean.
"""
