"""
The scheduling core: passive, deterministic, in memory.

It folds events into a state, checks commands against it, and decides; each decision is again an
event. It reads no clock, file, socket or environment. ``core.Core`` is the way in; README.md gives
the reading order.
"""
