"""Engines that can carry out a plan."""
