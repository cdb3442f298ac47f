"""The built-in model: the Qwen3 architecture in PyTorch, and its GGUF file."""

import json

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    """Root mean square norm."""

    def __init__(self, size, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


def rotate(x, cos, sin):
    """Rotary positions, the first half of a head against the second."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, head = c["width"], c["head_size"]
        self.heads, self.kv_heads, self.head = c["heads"], c["kv_heads"], head
        self.attn_norm = Norm(width, c["norm_epsilon"])
        self.attn_q = nn.Linear(width, c["heads"] * head, bias=False)
        self.attn_k = nn.Linear(width, c["kv_heads"] * head, bias=False)
        self.attn_v = nn.Linear(width, c["kv_heads"] * head, bias=False)
        self.attn_q_norm = Norm(head, c["norm_epsilon"])
        self.attn_k_norm = Norm(head, c["norm_epsilon"])
        self.attn_output = nn.Linear(c["heads"] * head, width, bias=False)
        self.ffn_norm = Norm(width, c["norm_epsilon"])
        self.ffn_gate = nn.Linear(width, c["feed_forward"], bias=False)
        self.ffn_up = nn.Linear(width, c["feed_forward"], bias=False)
        self.ffn_down = nn.Linear(c["feed_forward"], width, bias=False)

    def forward(self, x, cos, sin):
        n, t, _ = x.shape
        h = self.attn_norm(x)
        q = self.attn_q_norm(self.attn_q(h).view(n, t, self.heads, self.head)).transpose(1, 2)
        k = self.attn_k_norm(self.attn_k(h).view(n, t, self.kv_heads, self.head)).transpose(1, 2)
        v = self.attn_v(h).view(n, t, self.kv_heads, self.head).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_output(h.transpose(1, 2).reshape(n, t, -1))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Model(nn.Module):
    """Gives the hidden states [batch, length, width]; logits() what comes next."""

    def __init__(self, c):
        super().__init__()
        self.token_embd = nn.Embedding(c["vocabulary"], c["width"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.output_norm = Norm(c["width"], c["norm_epsilon"])
        half = c["head_size"] // 2
        rates = c["rope_base"] ** (-torch.arange(half) / half)
        angles = torch.outer(torch.arange(c["context"]), rates)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() < 2:
                continue
            scale = 0.02 if "embd" in name else p.shape[1] ** -0.5
            if "output" in name or "down" in name:
                scale *= (2 * c["layers"]) ** -0.5
            nn.init.normal_(p, std=scale)

    def forward(self, tokens):
        t = tokens.shape[1]
        x = self.token_embd(tokens)
        for layer in self.layers:
            x = layer(x, self.cos[:t], self.sin[:t])
        return self.output_norm(x)

    def logits(self, hidden):
        return hidden @ self.token_embd.weight.T


def write_gguf(model, c, tokenizer, control, path):
    """Writes weights (matrices as f16) and vocabulary as Ollama and llama.cpp read them."""
    w = gguf.GGUFWriter(path, "qwen3")
    w.add_name("stopgap")
    w.add_description("stopgap's built-in model: it searches, reads and cites, and knows nothing")
    w.add_license("Apache-2.0")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    w.add_context_length(c["context"])
    w.add_embedding_length(c["width"])
    w.add_block_count(c["layers"])
    w.add_feed_forward_length(c["feed_forward"])
    w.add_head_count(c["heads"])
    w.add_head_count_kv(c["kv_heads"])
    w.add_key_length(c["head_size"])
    w.add_value_length(c["head_size"])
    w.add_rope_freq_base(c["rope_base"])
    w.add_layer_norm_rms_eps(c["norm_epsilon"])
    write_vocabulary(w, json.loads(tokenizer.to_str()), control)
    for name, p in model.named_parameters():
        name = name.replace("layers.", "blk.")
        data = p.detach().numpy()
        w.add_tensor(name, data.astype(np.float16 if data.ndim > 1 else np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_vocabulary(w, t, control):
    tokens = sorted(t["model"]["vocab"], key=t["model"]["vocab"].get)
    types = [gguf.TokenType.NORMAL] * len(tokens)
    for a in t["added_tokens"]:
        assert a["id"] == len(tokens), "the special tokens come last"
        tokens.append(a["content"])
        types.append(gguf.TokenType.CONTROL if a["content"] in control else gguf.TokenType.USER_DEFINED)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in t["model"]["merges"]])
    w.add_bos_token_id(tokens.index("<|endoftext|>"))
    w.add_eos_token_id(tokens.index("<|im_end|>"))
    w.add_pad_token_id(tokens.index("<|endoftext|>"))
    w.add_array("tokenizer.ggml.eos_token_ids", [tokens.index("<|im_end|>"), tokens.index("<|endoftext|>")])
    w.add_add_bos_token(False)
