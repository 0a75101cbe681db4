"""How complete and how right must a graph be for a licence to pay?

The world is a domain's whole graph, and says what is right. The licence has a worse copy: triples
are lost, others are wrong. `models` and `claims` draw what is asked and answered, `scoring` counts
what it was worth, `sweep` goes over all of it, `thesis` judges, `figures` and `report` show it.
"""
