"""The sweep of `benchmarks.completeness` on the domains that other packages hold.

`python -m benchmarks completeness_installed` wants WordNet and pykeen (conf/epistemic/domain/): it
ends in a line that says which is missing. Writes into benchmarks/results/epistemic/, the folder of
its name.
"""

from __future__ import annotations

from benchmarks.completeness import keep

DOMAINS = ("wordnet", "kinships", "umls")


def main() -> None:
    """The standard sweep, of simulated models alone."""
    keep({"completeness_installed": (f"study.domains=[{','.join(DOMAINS)}]",)})


if __name__ == "__main__":
    main()
