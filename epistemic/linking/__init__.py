"""From words to a claim: what a text says, and which things of a graph it speaks of.

`names` finds mentions of a graph's things, `relations` knows how a domain speaks of its relations,
`extraction` finds the relation between mentions and whether the text affirms it; `found` and
`counts` are what comes out. `texts` words claims in other ways than the decks do, to test it.
"""
