"""From words to a claim: what a text says, and which things of a graph it speaks of.

`names` finds mentions of a graph's things, `extraction` finds the relation between them and whether
the text affirms it, `texts` words claims in other ways than the decks do, to test both.
"""
