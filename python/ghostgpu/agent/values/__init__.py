"""What values on the card read as.

Nothing is computed on a virtual card. Values that follow from the host are remembered as the calls
that made them (`known_values`, `known_calls`, `known_copies`) and computed there when one is asked
for (`host_values`). Everything else reads as `plausible` says. `readbacks` and `data_dependent` are
where scripts ask; `waiting_loops` notices the ones that ask for ever.
"""
