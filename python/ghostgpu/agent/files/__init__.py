"""Which files a rehearsal may write, so that checkpoints of zeros never replace real ones.

`checkpoint_paths` decides; `checkpoints` and `file_hooks` ask it wherever torch, frameworks or the
script itself open a file.
"""
