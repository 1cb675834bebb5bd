"""
Run a core against a log: the engine, the simulation, and reading history back.
"""
