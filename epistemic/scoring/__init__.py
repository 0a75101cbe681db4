"""From answers to numbers: metrics, the assessment of systems, the thesis."""
