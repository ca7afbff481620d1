//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// vllm is vLLM on a CPU, with a model of random weights. It is installed by hand: 8 GB.
func vllm() recipe {
	counts := []row{
		{Ask: "vllm:prompt_tokens total", Truth: "prompt"},
		{Ask: "vllm:generation_tokens total", Truth: "output"},
		{Ask: "vllm:request_success total", Truth: "ok"},
	}
	rates := append([]row{
		{Ask: "derived:request_rate", Truth: "ok/s", Within: 0.01},
		{Ask: "derived:output_tok_s", Truth: "output/s", Within: 0.01}}, counts...)
	paced := func(n int, every time.Duration) func(context.Context, *client) error {
		return func(ctx context.Context, c *client) error { return c.paced(ctx, n, every, complete(ctx, c)) }
	}
	return recipe{
		name:     "vllm",
		versions: "vLLM 0.32.0, CPU",
		byHand:   true,
		setup: func(ctx context.Context, l *lab) error {
			// It asks which version of vllm is installed, and the wheel has another name.
			info := filepath.Join(l.home(), "venv", "lib", "python3.11", "site-packages", "vllm-0.32.0+cpu.dist-info")
			if err := os.MkdirAll(info, 0o755); err != nil {
				return err
			}
			text := "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"
			if err := os.WriteFile(filepath.Join(info, "METADATA"), []byte(text), 0o644); err != nil {
				return err
			}
			return l.do(ctx, "model.log", l.python("python"), l.file("model.py"), l.file("tiny"))
		},
		start: func(l *lab, s *scenario) []*process {
			port := freePort()
			return []*process{{name: "vllm", port: port, again: true, ready: loopback(port, "/health"),
				metrics: loopback(port, "/metrics"),
				env: []string{"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "VLLM_CPU_KVCACHE_SPACE=1",
					"VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
					"PATH=" + filepath.Dir(l.python("python")) + ":" + os.Getenv("PATH")},
				args: append([]string{l.python("vllm"), "serve", l.file("tiny"), "--load-format", "dummy", "--max-model-len",
					"1024", "--dtype", "bfloat16", "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--served-model-name",
					"tiny", "--enforce-eager"}, s.args...)}}
		},
		scenarios: []scenario{
			{name: "late", late: 20 * time.Second, rows: rates, load: paced(200, 250*time.Millisecond)},
			{name: "saturated", args: []string{"--max-num-seqs", "4", "--num-gpu-blocks-override", "12"}, rows: rates,
				load: paced(400, time.Millisecond)},
			{name: "refused", args: []string{"--api-server-count", "2", "--max-num-queued-reqs", "4"}, rows: append([]row{
				{Ask: `http_requests{status="5xx"} total`, Truth: "refused"}}, counts...),
				fails: []string{"derived:error_ratio == 0"}, load: paced(150, time.Millisecond)},
			{name: "killed", rows: counts, load: acrossKill("vllm", "/health", paced(40, 100*time.Millisecond))},
		},
	}
}

// complete asks for a completion after a prompt whose beginning others share.
func complete(ctx context.Context, c *client) func(*rand.Rand) error {
	return func(rnd *rand.Rand) error {
		words := make([]string, 60+rnd.IntN(60))
		for i := range words {
			words[i] = "w" + strconv.Itoa(i)
			if i >= 32 {
				words[i] = "w" + strconv.Itoa(rnd.IntN(2000))
			}
		}
		status, text, err := c.post(ctx, "/v1/completions", map[string]any{"model": "tiny", "ignore_eos": true,
			"prompt": strings.Join(words, " "), "max_tokens": 16 + rnd.IntN(64)})
		if err != nil {
			return err
		}
		c.add("sent", 1)
		switch status {
		case http.StatusOK:
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			c.add("refused", 1)
			return nil
		default:
			return fmt.Errorf("complete: status %d, %s", status, text)
		}
		var answer struct {
			Usage struct {
				Prompt float64 `json:"prompt_tokens"`
				Output float64 `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		c.add("ok", 1)
		c.add("prompt", answer.Usage.Prompt)
		c.add("output", answer.Usage.Output)
		return nil
	}
}
