"""Learners: networks that take gradient steps, readers, controls; all by name in `registry`."""
