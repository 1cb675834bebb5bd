"""
Feed the audit projection from a log, in a process of its own: the scheduler never waits for it.

``place`` says where the read model of a log is, ``feed`` catches up, follows and makes anew.
"""
