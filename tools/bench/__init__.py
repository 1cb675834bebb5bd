"""
Measure what XCE publishes about itself.
"""
