"""
Programs for those who work on XCE itself.
"""
