"""Learners: what is exposed to a sample and asked about it."""

from kubku.learners.registry import LEARNERS, NAMES, Entry, Group, make, named

__all__ = ["LEARNERS", "NAMES", "Entry", "Group", "make", "named"]
