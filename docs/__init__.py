"""The documentation: pages, the templates that are filled from result files, and what builds it."""
