"""
Test cases and runners for other people's parts, and for our own: LSF vectors now, plug-ins and
recorders beside them.

``python -m tools.conformance vectors FILE`` runs every vector of a file through the real code.
"""
