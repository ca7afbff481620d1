//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// dynamo is a frontend with the KV router and two workers that imitate an engine. What it says was used, and the
// status of each answer, are the truth. aisimulate, which it names as needed, is not on the package index and not used.
func dynamo() recipe {
	counts := []row{
		{Ask: `dynamo_frontend_requests{status="success"} total`, Truth: "ok"},
		{Ask: `dynamo_frontend_requests{status="error"} total`, Truth: "failed"},
		{Ask: "dynamo_frontend_output_tokens total", Truth: "output"},
		{Ask: "dynamo_frontend_input_sequence_tokens sum", Truth: "input"},
		{Ask: "dynamo_frontend_cached_tokens sum", Truth: "cached"},
	}
	return recipe{
		name:     "dynamo",
		versions: "ai-dynamo 1.6.1",
		setup: func(ctx context.Context, l *lab) error {
			return l.do(ctx, "model.log", l.python("python"), l.file("model.py"), l.file("tiny"))
		},
		start: dynamoProcesses,
		scenarios: []scenario{
			{name: "late", late: 20 * time.Second, rows: append([]row{
				{Ask: `derived:request_rate{model="tiny"}`, Truth: "ok/s", Within: 0.01},
				{Ask: "derived:output_tok_s", Truth: "output/s", Within: 0.01}}, counts...),
				load: func(ctx context.Context, c *client) error {
					if err := c.models(ctx); err != nil {
						return err
					}
					return c.paced(ctx, 250, 100*time.Millisecond, chat(ctx, c))
				}},
			{name: "killed", rows: append([]row{
				{Ask: `dynamo_frontend_requests{error_type="unavailable"} total`, Truth: "status 503"},
				{Ask: `dynamo_component_requests{dynamo_endpoint="generate"} total`, Truth: "ok"}}, counts...),
				fails: []string{`dynamo_frontend_requests{error_type="unavailable"} total == 0`},
				load: func(ctx context.Context, c *client) error {
					if err := c.models(ctx); err != nil {
						return err
					}
					if err := c.paced(ctx, 60, 50*time.Millisecond, chat(ctx, c)); err != nil {
						return err
					}
					if err := c.kill(ctx, "worker0", "worker1"); err != nil {
						return err
					}
					return c.paced(ctx, 100, 100*time.Millisecond, chat(ctx, c))
				}},
		},
	}
}

func dynamoProcesses(l *lab, s *scenario) []*process {
	store := filepath.Join(l.work, "dynamo-"+s.name, "store")
	env := []string{"DYN_EVENT_PLANE_HOST=127.0.0.1", "DYN_TCP_RPC_HOST=127.0.0.1",
		"DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV=" + store,
		"DYN_REQUEST_PLANE=tcp", "DYN_EVENT_PLANE=zmq", "HF_HUB_OFFLINE=1", "DYN_COMPUTE_THREADS=1",
		"TOKIO_WORKER_THREADS=2", "DYN_RUNTIME_NUM_WORKER_THREADS=2"}
	port := freePort()
	all := []*process{{name: "frontend", port: port, env: env, ready: loopback(port, "/v1/models"),
		metrics: loopback(port, "/metrics"), args: []string{l.python("python"), "-m", "dynamo.frontend",
			"--http-host", "127.0.0.1", "--http-port", strconv.Itoa(port), "--router-mode", "kv"}}}
	for i := range 2 {
		port := freePort()
		all = append(all, &process{name: fmt.Sprintf("worker%d", i), port: port, again: true,
			env:   append([]string{"DYN_SYSTEM_PORT=" + strconv.Itoa(port), "DYN_SYSTEM_HOST=127.0.0.1"}, env...),
			ready: loopback(port, "/metrics"), metrics: loopback(port, "/metrics"),
			args: []string{l.python("python"), "-m", "dynamo.mocker", "--model-path", l.file("tiny"), "--model-name",
				"tiny", "--speedup-ratio", "5", "--block-size", "16", "--num-gpu-blocks-override", "2000"}})
	}
	return all
}

// models waits until the frontend knows the model of the workers.
func (c *client) models(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/models", nil)
		if err != nil {
			return err
		}
		var known struct{ Data []any }
		if res, err := http.DefaultClient.Do(req); err == nil {
			err = json.NewDecoder(res.Body).Decode(&known)
			res.Body.Close()
			if err == nil && len(known.Data) > 0 {
				return nil
			}
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// chat sends a conversation whose beginning is shared; one in twenty is for a model that is not there.
func chat(ctx context.Context, c *client) func(*rand.Rand) error {
	return func(rnd *rand.Rand) error {
		model, words := "tiny", make([]string, 2+rnd.IntN(38))
		for i := range words {
			words[i] = "w" + strconv.Itoa(rnd.IntN(4000))
		}
		if rnd.IntN(20) == 0 {
			model = "nobody"
		}
		status, text, err := c.post(ctx, "/v1/chat/completions", map[string]any{
			"model": model, "max_tokens": 1 + rnd.IntN(39), "messages": []map[string]string{
				{"role": "system", "content": strings.Repeat("alpha beta gamma delta ", 12)},
				{"role": "user", "content": strings.Join(words, " ")}}})
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			c.add("failed", 1)
			c.add("status "+strconv.Itoa(status), 1)
			return nil
		}
		var answer struct {
			Usage struct {
				Prompt  float64 `json:"prompt_tokens"`
				Output  float64 `json:"completion_tokens"`
				Details struct {
					Cached float64 `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		c.add("ok", 1)
		c.add("input", answer.Usage.Prompt)
		c.add("output", answer.Usage.Output)
		c.add("cached", answer.Usage.Details.Cached)
		return nil
	}
}
