"""
Job pickers: plug-ins that say which job is next.
"""
