"""Where requests come in: in the engine's API server, before the engine is asked.

It tells whose request it is, writes that where the scheduler finds it, and refuses what would wait
too long. The engine is started with it: ``--middleware headway_runtime.door.middleware.Door``.
Standard library only.
"""
