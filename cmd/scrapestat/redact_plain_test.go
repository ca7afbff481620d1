package main

import (
	"strings"
	"testing"
)

// plainCommands are commands of load generators and servers without a secret in them.
var plainCommands = []string{
	"vllm bench serve --backend openai-chat --model meta-llama/Llama-3.1-8B-Instruct --dataset-name random",
	"vllm bench serve --random-input-len 1024 --random-output-len 128 --num-prompts 200 --request-rate inf",
	"vllm bench serve --tokenizer meta-llama/Llama-3.1-8B-Instruct --tokenizer-mode auto --max-concurrency 64",
	"vllm bench serve --endpoint /v1/chat/completions --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,99",
	"vllm bench serve --sharegpt-output-len 256 --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --seed 42",
	"vllm bench serve --goodput ttft:500 tpot:50 --burstiness 1.0 --ignore-eos --save-result --result-dir results",
	"vllm bench throughput --input-len 512 --output-len 256 --max-num-batched-tokens 8192 --kv-cache-dtype fp8",
	"vllm bench latency --hf_overrides x --batch-size 8 --skip-tokenizer-init --tokenizer-revision main",
	"vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4 --max-model-len 32768 --max-num-seqs 256",
	"vllm serve m --enable-prefix-caching --num-scheduler-steps 8 --speculative-model s --num-speculative-tokens 5",
	"vllm serve m --max-tokens 128 --key-cache-dtype fp8 --value-cache-dtype auto --tokenizer-pool-size 2",
	"vllm serve m --max-logprobs 20 --tool-call-parser hermes --enable-auto-tool-choice --chat-template t.jinja",
	"aiperf profile --model Qwen/Qwen3-0.6B --url localhost:8000 --endpoint-type chat --streaming --concurrency 10",
	"aiperf profile -m m --request-count 100 --isl 550 --osl 150 --isl-stddev 0 --random-seed 100 --tokenizer gpt2",
	"aiperf profile -m m --synthetic-input-tokens-mean 550 --synthetic-input-tokens-stddev 5 --output-tokens-mean 150",
	"aiperf profile -m m --prompt-input-tokens-mean 1024 --prompt-output-tokens-mean 128 --tokenizer-trust-remote-code",
	"aiperf profile -m m --session-concurrency 8 --num-sessions 40 --session-turns-mean 3 --session-turn-delay-mean 500",
	"aiperf profile -m m --input-file mooncake_trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
	"aiperf profile -m m --extra-inputs min_tokens:128 --extra-inputs max_tokens:128 --extra-inputs ignore_eos:true",
	"aiperf profile -m m --goodput request_latency:250 --artifact-dir artifacts/qwen3-isl550-osl150-c10",
	"guidellm benchmark --target http://localhost:8000 --rate-type sweep --max-seconds 30",
	"guidellm benchmark --target http://h:8000 --data prompt_tokens=256,output_tokens=128 --rate-type concurrent --rate 8",
	`guidellm benchmark --data {"prompt_tokens":512,"prompt_tokens_stdev":128,"output_tokens":256,"samples":1000}`,
	"guidellm benchmark --processor meta-llama/Llama-3.1-8B --output-path benchmarks.json --max-requests 500",
	"genai-perf profile -m llama --endpoint-type chat --output-tokens-mean-deterministic --streaming",
	"python -m sglang.bench_serving --backend sglang --num-prompts 500 --random-range-ratio 0.5 --apply-chat-template",
	"python -m sglang.launch_server --model-path m --mem-fraction-static 0.85 --chunked-prefill-size 4096 --tp 8",
	"trtllm-bench --model m throughput --dataset /d/token-norm-dist_i1024_o128.txt --kv_cache_free_gpu_mem_fraction 0.9",
	"locust -f locustfile.py --headless -u 100 -r 10 --run-time 5m --stop-timeout 10 --host http://localhost:8000",
	"sh -c for c in 1 2 4 8; do aiperf profile --concurrency $c --max-tokens=$((c*16)) --sort-key ttft; done",
}

// What a person asks of a recorded command is what the load was: ordinary words of it stay readable.
func TestPlainCommandsStay(t *testing.T) {
	t.Parallel()
	if len(plainCommands) < 30 {
		t.Fatalf("%d commands", len(plainCommands))
	}
	for _, line := range plainCommands {
		for _, args := range [][]string{strings.Fields(line), {"sh", "-c", line}} {
			if got := strings.Join(redactArgs(args), " "); got != strings.Join(args, " ") {
				t.Errorf("%q is kept as\n %q", line, got)
			}
		}
	}
}
