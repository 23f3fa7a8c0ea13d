"""Pure rendering: a spec and what was decided about it -> the Kubernetes objects of a service."""

from headway_operator.render.children import Blueprint, render_children

__all__ = ["Blueprint", "render_children"]
