"""
The vocabulary of XCE: events, commands, identifiers, units and rules, all of it pure.

Every other folder may import this one; it imports none of them and touches no clock, file, socket
or environment.
"""
