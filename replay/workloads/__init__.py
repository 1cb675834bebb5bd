"""
Read recorded workloads; `source` holds what all readers give, `swf` reads the Standard Workload Format.
"""
