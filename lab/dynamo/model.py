"""Writes a tokenizer of made-up words and the settings of a model that no server loads: model.py FOLDER."""
import json
import os
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
special = ["<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
names = special + ["alpha", "beta", "gamma", "delta", "user", "system", "assistant"] + [f"w{i}" for i in range(4000)]
vocabulary = {name: i for i, name in enumerate(names)}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.add_special_tokens(special)
tokenizer.save(f"{folder}/tokenizer.json")


def write(name, **settings):
    with open(f"{folder}/{name}.json", "w") as f:
        json.dump(settings, f)


write("config", architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=64, intermediate_size=128,
      num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2, vocab_size=len(vocabulary),
      max_position_embeddings=8192, bos_token_id=1, eos_token_id=3, torch_dtype="float16", rms_norm_eps=1e-6,
      rope_theta=10000.0, tie_word_embeddings=True, hidden_act="silu")
write("tokenizer_config", tokenizer_class="PreTrainedTokenizerFast", bos_token="<|endoftext|>", eos_token="<|im_end|>",
      pad_token="<|endoftext|>", unk_token="<unk>", model_max_length=8192,
      chat_template="{% for m in messages %}<|im_start|> {{ m['role'] }} {{ m['content'] }} <|im_end|> {% endfor %}"
      "{% if add_generation_prompt %}<|im_start|> assistant {% endif %}")
write("generation_config", eos_token_id=[3], bos_token_id=1)
