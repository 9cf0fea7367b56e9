#!/bin/sh
# Serve the paper's embedding model at http://127.0.0.1:8001/v1 (llm.embeddings.base_url).
# What each flag is for stands in README.md. Further flags are handed on.
set -eu

MODEL="${MODEL:-Qwen/Qwen3-Embedding-4B}"
HOST="${HOST:-127.0.0.1}"
PORT="${PORT:-8001}"
MAX_MODEL_LEN="${MAX_MODEL_LEN:-32768}"
GPU_SHARE="${GPU_SHARE:-0.25}"

[ -z "${MESA_API_KEY:-}" ] || export VLLM_API_KEY="$MESA_API_KEY"

exec vllm serve "$MODEL" \
  --runner pooling \
  --host "$HOST" \
  --port "$PORT" \
  --max-model-len "$MAX_MODEL_LEN" \
  --gpu-memory-utilization "$GPU_SHARE" \
  "$@"
