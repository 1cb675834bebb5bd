"""
The worker agent: it joins a cluster, starts its assignments through a launcher of its own, and
reports.

`agent.py` is the program (``python -m tools.agent``); `launcher.py` the small one that outlives it.
"""
