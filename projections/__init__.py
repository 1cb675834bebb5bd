"""
What the log means: projections fold its events into state.
"""
