//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// llamacpp is llama.cpp's server with a model of random weights. The timings in its answers are the truth.
func llamacpp() recipe {
	counts := []row{
		{Ask: "llamacpp:prompt_tokens total", Truth: "prompt"},
		{Ask: "llamacpp:prompt_tokens_cached total", Truth: "cached"},
		{Ask: "llamacpp:tokens_predicted total", Truth: "predicted"},
		{Ask: "llamacpp:tokens_predicted_seconds total", Truth: "predicted seconds", Within: 1e-4},
	}
	rates := []row{
		{Ask: "derived:output_tok_s", Truth: "predicted/s", Within: 0.01},
		{Ask: "derived:input_tok_s", Truth: "asked/s", Within: 0.01},
		{Ask: "derived:computed_tok_s", Truth: "prompt/s", Within: 0.01},
	}
	return recipe{
		name:     "llamacpp",
		versions: "llama.cpp (xllamacpp 2026.10.11549)",
		besides: map[string]string{
			"llamacpp:n_tokens_max total": "the server calls the highest value so far a counter"},
		setup: func(ctx context.Context, l *lab) error {
			return l.do(ctx, "model.log", l.python("python"), l.file("model.py"), l.file("tiny.gguf"))
		},
		start: func(l *lab, s *scenario) []*process {
			port := freePort()
			return []*process{{name: "llama", port: port, again: true, ready: loopback(port, "/health"),
				metrics: loopback(port, "/metrics"), args: append([]string{l.python("python"), l.file("server.py"),
					l.file("tiny.gguf"), strconv.Itoa(port)}, s.args...)}}
		},
		scenarios: []scenario{
			{name: "late", args: []string{"2"}, late: 20 * time.Second, rows: append(rates, counts...),
				load: func(ctx context.Context, c *client) error {
					return c.paced(ctx, 200, 125*time.Millisecond, completion(ctx, c))
				}},
			{name: "saturated", sample: true, args: []string{"1"}, rows: counts,
				load: func(ctx context.Context, c *client) error {
					return c.paced(ctx, 200, time.Millisecond, completion(ctx, c))
				}},
			{name: "killed", args: []string{"2"}, rows: counts,
				load: acrossKill("llama", "/health", func(ctx context.Context, c *client) error {
					return c.paced(ctx, 60, 50*time.Millisecond, completion(ctx, c))
				})},
		},
	}
}

// completion asks for a completion of one to sixty tokens after a prompt whose beginning others share.
func completion(ctx context.Context, c *client) func(*rand.Rand) error {
	return func(rnd *rand.Rand) error {
		status, text, err := c.post(ctx, "/completion", map[string]any{
			"prompt": strings.Repeat("alpha beta the ", 1+rnd.IntN(29)), "n_predict": 1 + rnd.IntN(60),
			"ignore_eos": true, "cache_prompt": true})
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("complete: status %d, %s: %w", status, text, err)
		}
		var answer struct {
			Timings struct { // its prompt_ms is another time than that of the metric
				Prompt      float64 `json:"prompt_n"`
				Cached      float64 `json:"cache_n"`
				Predicted   float64 `json:"predicted_n"`
				PredictedMs float64 `json:"predicted_ms"`
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		t := answer.Timings
		c.add("requests", 1)
		c.add("prompt", t.Prompt)
		c.add("asked", t.Prompt+t.Cached)
		c.add("cached", t.Cached)
		c.add("predicted", t.Predicted)
		c.add("predicted seconds", t.PredictedMs/1e3)
		return nil
	}
}
