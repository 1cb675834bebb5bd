"""
The demonstration that ``make run`` shows: a cluster at work, a crash in the middle, the recovery.
"""
