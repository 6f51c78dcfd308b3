"""How many steps a chunk is made of, as its model is built."""

from __future__ import annotations

SOLVER_STEPS = 10


def steps_of_a_chunk(model):
    """Of a short one: a layer of the encoder, a block of a solver step and a block of the vocoder each; the chunk."""
    encoder, estimator = model.flow.encoder, model.flow.decoder.estimator
    layers = len(encoder.encoders) + len(encoder.up_encoders)
    stages = (*estimator.down_blocks, *estimator.mid_blocks, *estimator.up_blocks)
    blocks = sum(len(stage[1]) for stage in stages)
    return layers + SOLVER_STEPS * blocks + len(model.hift.resblocks) + 1
