"""Model directories with exactly one fault, for rehearsing what happens when a version is bad. No torch at import.

kit.py      the list of faults, and `make_bad`
fault.py    what a fault is: what it does to a copy, and what a worker must say about it
copy.py     the copy of a good directory; the good one is never written to
files.py    faults that a stager finds, or an engine in the yaml
tensors.py  faults in the weights, which an engine finds
crafted.py  checkpoints that make loading itself go wrong: it takes too long, takes too much memory, crashes
archive.py  writes those checkpoints
"""
