"""Learns the byte-level BPE of the built-in model from generated samples."""

import json
import sys

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

# Token types as GGUF has them: 3 control, 4 user defined. Which is which is as
# in Qwen3's own file.
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def learn(samples, size):
    """Gives a tokenizer with size tokens, the special ones last."""
    special = CONTROL + USER_DEFINED
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    t.train_from_iterator(texts(samples, special), trainer)
    t.add_special_tokens(special)
    return t


def texts(samples, special):
    for line in samples:
        text = "".join(s["text"] for s in json.loads(line)["segments"])
        for token in special:
            text = text.replace(token, "\n")
        yield text


if __name__ == "__main__":
    learn(sys.stdin, int(sys.argv[1])).save(sys.argv[2])
