"""
Golden logs, and the scripts that make them.
"""
