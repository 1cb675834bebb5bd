"""
Read recorded workloads: `source` is what every reader gives, `swf` reads the standard format.
"""
