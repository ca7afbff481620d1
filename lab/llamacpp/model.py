"""Writes a tiny model with random weights and a made-up vocabulary."""
import sys

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 64, 2, 4, 128, 2048
words = [chr(c).encode() for c in range(97, 123)] + [("\u2581" + w).encode() for w in ("the", "alpha", "beta", "world")]
tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{i:02X}>".encode() for i in range(256)] + ["\u2581".encode()] + words
plain = len(tokens) - 259

w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_context_length(CONTEXT)
w.add_embedding_length(WIDTH)
w.add_block_count(LAYERS)
w.add_feed_forward_length(HIDDEN)
w.add_head_count(HEADS)
w.add_head_count_kv(HEADS)
w.add_layer_norm_rms_eps(1e-5)
w.add_rope_dimension_count(WIDTH // HEADS)
w.add_vocab_size(len(tokens))
w.add_file_type(0)
w.add_tokenizer_model("llama")
w.add_token_list(tokens)
w.add_token_scores([0.0] * 259 + [-float(i) for i in range(plain)])
w.add_token_types([2, 3, 3] + [6] * 256 + [1] * plain)
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_unk_token_id(0)

random = np.random.default_rng(1)


def matrix(name, *shape):
    w.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float32))


matrix("token_embd.weight", len(tokens), WIDTH)
w.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
matrix("output.weight", len(tokens), WIDTH)
for i in range(LAYERS):
    w.add_tensor(f"blk.{i}.attn_norm.weight", np.ones(WIDTH, np.float32))
    w.add_tensor(f"blk.{i}.ffn_norm.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        matrix(f"blk.{i}.{name}.weight", WIDTH, WIDTH)
    matrix(f"blk.{i}.ffn_gate.weight", HIDDEN, WIDTH)
    matrix(f"blk.{i}.ffn_up.weight", HIDDEN, WIDTH)
    matrix(f"blk.{i}.ffn_down.weight", WIDTH, HIDDEN)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
