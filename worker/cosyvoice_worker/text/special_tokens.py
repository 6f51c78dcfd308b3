"""The tokens that CosyVoice2 adds to its backbone's vocabulary, in the order of their ids."""

END_OF_PROMPT = "<|endofprompt|>"

# Qwen2's own come first; the model directory's tokenizer_config.json has them too.
BACKBONE = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

# Sounds and styles that may stand in a text.
EXPRESSIONS = (
    "[breath]",
    "<strong>",
    "</strong>",
    "[noise]",
    "[laughter]",
    "[cough]",
    "[clucking]",
    "[accent]",
    "[quick_breath]",
    "<laughter>",
    "</laughter>",
    "[hissing]",
    "[sigh]",
    "[vocalized-noise]",
    "[lipsmack]",
    "[mn]",
)

ALL = (*BACKBONE, END_OF_PROMPT, *EXPRESSIONS)
