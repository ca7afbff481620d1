//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// classes are the released metric classes of engines that need more than a lab has, fed with known numbers.
func classes() recipe {
	load := func(ctx context.Context, c *client) error {
		return c.paced(ctx, 40, 100*time.Millisecond, feed(ctx, c))
	}
	return recipe{
		name:     "classes",
		versions: "SGLang 0.5.23, vLLM-Omni 0.30.0",
		start: func(l *lab, s *scenario) []*process {
			port := freePort()
			return []*process{{name: "classes", port: port, again: true, ready: loopback(port, "/metrics"),
				metrics: loopback(port, "/metrics"),
				args:    []string{l.python("python"), l.file("serve.py"), s.args[0], strconv.Itoa(port)}}}
		},
		scenarios: []scenario{
			{name: "sglang", sample: true, args: []string{"sglang"}, load: load},
			{name: "omni", sample: true, args: []string{"omni"}, load: load},
			{name: "sglang-killed", args: []string{"sglang"}, load: acrossKill("classes", "/metrics", load)},
		},
	}
}

// feed has each class observe something; its answer is what.
func feed(ctx context.Context, c *client) func(*rand.Rand) error {
	return func(rnd *rand.Rand) error {
		status, text, err := c.post(ctx, "/drive", map[string]any{"seed": rnd.IntN(1 << 30)})
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("drive: status %d, %s: %w", status, text, err)
		}
		sums := map[string]float64{}
		if err := json.Unmarshal(text, &sums); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		for ask, n := range sums {
			c.add(asked+ask, n)
		}
		return nil
	}
}
