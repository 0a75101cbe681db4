"""A world drawn as pixels."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from goodharts_jax.world import FOOD, NUM_KINDS, POISON

PIXELS = 5
"""Side of a cell, in pixels."""

# Told apart without colours too: food is bright, poison dark, the agent darkest.
_OUTSIDE, _INSIDE, _AGENT = np.array([[232, 232, 235], [254, 254, 254], [27, 28, 32]], np.uint8)
_ITEMS = np.zeros((NUM_KINDS, 3), np.uint8)
_ITEMS[FOOD], _ITEMS[POISON] = (86, 180, 233), (176, 58, 0)


def frame(cells: np.ndarray, position: np.ndarray, radius: int) -> np.ndarray:
    """A torus from above; what the agent sees is lighter than the rest.

    Args:
      cells: codes. uint8[size, size].
      position: (y, x) of the agent. int[2].
      radius: of its view, in cells.

    Returns:
      uint8[5 size, 5 size, 3].
    """
    size = len(cells)
    near = np.abs((np.arange(size) - np.asarray(position)[:, None] + size // 2) % size - size // 2)
    seen = (near[0] <= radius)[:, None] & (near[1] <= radius)
    image = np.where(seen[..., None], _INSIDE, _OUTSIDE)
    image = np.where((cells > 0)[..., None], _ITEMS[cells], image)
    image[tuple(position)] = _AGENT
    return image.repeat(PIXELS, axis=0).repeat(PIXELS, axis=1)


class Window:
    """A Matplotlib window for frames; where there is no display, a figure that nobody sees."""

    def __init__(self, image: np.ndarray) -> None:
        self._pyplot: Any = importlib.import_module("matplotlib.pyplot")
        self.figure, axes = self._pyplot.subplots(figsize=(5, 5), num="Goodhart", clear=True)
        axes.set_axis_off()
        self.picture = axes.imshow(image)
        self._is_seen = hasattr(self.figure.canvas, "start_event_loop") and (
            type(self.figure.canvas).start_event_loop is not _base_canvas().start_event_loop
        )

    def show(self, image: np.ndarray) -> None:
        """The next frame."""
        self.picture.set_data(image)
        self.figure.canvas.draw()
        if self._is_seen:
            self._pyplot.pause(1e-3)

    def close(self) -> None:
        """Close the window."""
        self._pyplot.close(self.figure)


def _base_canvas() -> Any:
    return importlib.import_module("matplotlib.backend_bases").FigureCanvasBase
