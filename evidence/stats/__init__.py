"""Numbers with their uncertainty: intervals, tests and effect sizes.

Thin functions over scipy. Each takes one value per replicate (a run, a sample, a subject):
which replicates are independent is the caller's to decide, and `unit` says it in every
Measurement. How often each interval covers the truth at 3, 5, 10 and 30 replicates has been
measured; see docs/statistics.md.
"""

from evidence.stats._shared import Array, Values
from evidence.stats.comparisons import (
    Comparison,
    bonferroni,
    cohens_d,
    difference_interval,
    effect_label,
    hedges_g,
    holm,
    paired,
    pairs_needed,
    runs_needed,
    welch,
)
from evidence.stats.intervals import (
    bootstrap_interval,
    interval,
    other_interval,
    ratio_interval,
    t_interval,
    wilson,
)
from evidence.stats.resampling import (
    VarianceComponents,
    cluster_bootstrap,
    cluster_means,
    from_draws,
    hierarchical_bootstrap,
    variance_components,
)

__all__ = [
    "Array",
    "Comparison",
    "Values",
    "VarianceComponents",
    "bonferroni",
    "bootstrap_interval",
    "cluster_bootstrap",
    "cluster_means",
    "cohens_d",
    "difference_interval",
    "effect_label",
    "from_draws",
    "hedges_g",
    "hierarchical_bootstrap",
    "holm",
    "interval",
    "other_interval",
    "paired",
    "pairs_needed",
    "ratio_interval",
    "runs_needed",
    "t_interval",
    "variance_components",
    "welch",
    "wilson",
]
