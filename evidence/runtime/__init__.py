"""Machinery: devices, files, settings, progress, commands and language models."""
