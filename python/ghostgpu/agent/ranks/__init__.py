"""This process as one rank of a distributed job.

`this_rank` is where a rank joins and ends. `rank_processes` and `stuck_ranks` watch how ranks meet,
`collectives` and `rank_values` hand known values from one to the other, `rank_launcher` and
`absent_ranks` are for jobs of which only some ranks run.
"""
