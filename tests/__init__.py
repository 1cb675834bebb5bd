"""
Tests of XCE; never installed.
"""
