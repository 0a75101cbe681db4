"""What a study says that it will take, by hand."""

import io

import hydra
from omegaconf import OmegaConf
from rich.console import Console

from epistemic import ahead
from epistemic.settings import read


def told(tell, *overrides):
    with hydra.initialize_config_module("conf.epistemic", version_base="1.3"):
        plain = OmegaConf.to_container(hydra.compose("config", list(overrides)), resolve=True)
    said = io.StringIO()
    tell(read(plain), Console(file=said, width=200))
    return said.getvalue().splitlines()


def test_cards_systems_and_prompts_are_counted():
    few = ["cards.per_type=10", "cards.needs_graph=2", "near_miss.num=4"]
    first, second = told(ahead.of_systems, *few, "system.names=[kg_oracle]")
    # As many YES as NO and UNKNOWN stand beside near misses.
    assert first == "36 cards and 6 of near misses, 1 system"
    assert second.startswith("about 9 s, the first time 3 s of it compiling")  # 8 + .025 x 42
    asked = ["llm=endpoint", "llm.base_url=http://localhost/v1", "llm.model=m"]
    first, _ = told(ahead.of_systems, *few, *asked, "system.names=[llm,rag,kg_oracle]")
    assert first.endswith("3 systems; up to 84 prompts for m, whose time comes on top")
    # Recorded replies, on a deck that is there.
    first, _ = told(ahead.of_systems, "domain=rivers", "llm=recorded", "system.names=[llm,rag]")
    assert first == "60 cards and 0 of near misses, 2 systems"


def test_worse_graphs_are_counted():
    def tell(settings, console):
        ahead.of_sweep(settings, [2_000, 350_000], console)

    drawn = ["study.keep=[1,0.5]", "study.wrong=[0]", "budget.draws=10", "budget.claims=50"]
    first, second = told(tell, "study=completeness", *drawn)
    assert first == "2 domains, 20 worse graphs each, 50 claims a graph"
    assert second.startswith("about 50 s")  # 8 + 20 x (.11 + 1.85)
