"""Frames: what a story states, shown instead of told. The pictures are all that differs."""

from kubku.tasks.stories import STORIES

FRAMES = STORIES._replace(name="frames", is_shown=True)
