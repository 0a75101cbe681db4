"""Task families: generators of samples and their halos, on the device, from a key."""

from kubku.tasks.family import SPLITS, Family, Split, question, say, story
from kubku.tasks.frames import FRAMES
from kubku.tasks.generation import apart, generate
from kubku.tasks.grids import GRIDS
from kubku.tasks.rules import Rules, instances
from kubku.tasks.series import SERIES
from kubku.tasks.stories import STORIES

FAMILIES = {family.name: family for family in (STORIES, SERIES, GRIDS, FRAMES)}

__all__ = [
    "FAMILIES",
    "SPLITS",
    "Family",
    "Rules",
    "Split",
    "apart",
    "generate",
    "instances",
    "question",
    "say",
    "story",
]
