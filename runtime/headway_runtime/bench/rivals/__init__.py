"""Planners in the place of Headway's: other people's, and its own with one part off."""
