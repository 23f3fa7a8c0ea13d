"""The container beside the engine: takes in policies and tells how the engine fares.

It is not in the path of requests.
"""
