"""
The live driver: one process that owns a log, answers an HTTP API on a unix socket, and gives
workers their work.

`process.py` is the program, `engine_thread.py` the one thread that changes anything, `api.py` what
can be asked, `access.py` who may ask it.
"""
