"""
The harnesses that try to make the store lose or mislead: kills, damage, faults, power loss.

Short forms run in the tests; ``make torture`` runs the long ones. A harness counts only if it has
been seen to fail: each has a sabotage that it must catch.
"""
