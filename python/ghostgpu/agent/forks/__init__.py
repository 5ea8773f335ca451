"""One process continued for several rehearsals.

A script waits at a place that comes before everything a rehearsal changes, and forks for each one:
at a size point (`size_points`: its `DataLoader` or an option of its command line), or just before
it first uses the card (`card_point`). `fork_server` does the forking.
"""
