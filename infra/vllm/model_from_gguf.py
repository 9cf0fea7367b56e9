"""Make a model directory, as vLLM and transformers read it, from a GGUF file of a Llama architecture.

transformers refuses to save a model that it has read from a GGUF file, so its weights are copied into a fresh one first.

    python model_from_gguf.py model.gguf folder
"""

import sys
from pathlib import Path

from transformers import AutoTokenizer, LlamaForCausalLM


def convert(weights: Path, folder: Path) -> None:
    """Write configuration, weights and tokenizer of ``weights`` into ``folder``."""
    read = LlamaForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
    config = read.config
    for left_over in ("quantization_config", "gguf_file"):
        if hasattr(config, left_over):
            delattr(config, left_over)
    made = LlamaForCausalLM(config)
    made.load_state_dict(read.state_dict())
    made.to(read.dtype).save_pretrained(folder)
    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(folder)


if __name__ == "__main__":
    convert(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
