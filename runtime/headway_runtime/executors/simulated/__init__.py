"""An engine that is made up: schedules as vLLM does, in time that is counted and not waited for.

It carries out plans of the product's own planner, so that control loops can be tried against hours
of traffic without a GPU. Nothing in here looks at a clock, and chance is passed in.
"""
