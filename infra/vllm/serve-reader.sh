#!/bin/sh
# Serve the paper's language model, for every role but embeddings, at http://127.0.0.1:8000/v1 (llm.chat.base_url).
# What each flag is for stands in README.md. Further flags are handed on: ./serve-reader.sh --tensor-parallel-size 2
set -eu

MODEL="${MODEL:-Qwen/Qwen3-32B}"
HOST="${HOST:-127.0.0.1}"
PORT="${PORT:-8000}"
MAX_MODEL_LEN="${MAX_MODEL_LEN:-32768}"
GPU_SHARE="${GPU_SHARE:-0.90}"

[ -z "${MESA_API_KEY:-}" ] || export VLLM_API_KEY="$MESA_API_KEY"

exec vllm serve "$MODEL" \
  --host "$HOST" \
  --port "$PORT" \
  --max-model-len "$MAX_MODEL_LEN" \
  --max-num-seqs 64 \
  --gpu-memory-utilization "$GPU_SHARE" \
  --enable-prefix-caching \
  --enable-prompt-tokens-details \
  --generation-config vllm \
  "$@"
