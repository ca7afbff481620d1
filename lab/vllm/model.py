"""Writes a tokenizer of made-up words and the settings of a model that is given random weights: model.py FOLDER."""
import json
import os
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
special = ["<unk>", "<s>", "</s>"]
vocabulary = {name: i for i, name in enumerate(special + [f"w{i}" for i in range(2000)])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.add_special_tokens(special)
tokenizer.save(f"{folder}/tokenizer.json")


def write(name, **settings):
    with open(f"{folder}/{name}.json", "w") as f:
        json.dump(settings, f)


write("config", architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=64, intermediate_size=128,
      num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=32, vocab_size=len(vocabulary),
      max_position_embeddings=2048, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu", bos_token_id=1,
      eos_token_id=2, torch_dtype="bfloat16", tie_word_embeddings=False)
write("tokenizer_config", tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>",
      unk_token="<unk>", model_max_length=2048)
write("generation_config", eos_token_id=2, bos_token_id=1)
