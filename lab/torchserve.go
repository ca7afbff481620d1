//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// torchserve is TorchServe with a handler of ours, which needs no torch; of twenty requests one names no model and one
// fails, with those of its batch. It tells its metrics by /metrics, or by its logs.
func torchserve() recipe {
	counts := []row{
		{Ask: "ts_inference_requests total", Truth: "requests"},
		{Ask: "Requests4XX total", Truth: "status 404"},
		{Ask: "Requests5XX total", Truth: "failed"},
		{Ask: "MyTokens total", Truth: "tokens"},
	}
	load := func(ctx context.Context, c *client) error {
		return c.paced(ctx, 200, 25*time.Millisecond, predict(ctx, c))
	}
	return recipe{
		name:     "torchserve",
		versions: "TorchServe 0.12.0, Java 17",
		setup: func(context.Context, *lab) error {
			if _, err := exec.LookPath("java"); err != nil {
				return fmt.Errorf("TorchServe needs Java 17, openjdk-17-jre-headless: %w", err)
			}
			return nil
		},
		accepted: map[string]string{
			"MyTokens":  "the handler makes it",
			"MyLatency": "the handler makes it",
		},
		start: torchserveProcesses,
		scenarios: []scenario{
			{name: "late", late: 20 * time.Second, args: []string{"prometheus"}, rows: append([]row{
				{Ask: "derived:request_rate", Truth: "requests/s", Within: 0.01}}, counts...), load: load},
			{name: "log", args: []string{"log"}, unkept: true, rows: counts, load: load},
			{name: "killed", args: []string{"prometheus"}, rows: counts, load: acrossKill("torchserve", "/ping", load)},
		},
	}
}

func torchserveProcesses(l *lab, s *scenario) []*process {
	port, metrics, mode := freePort(), freePort(), s.args[0]
	home := filepath.Join(l.home(), "venv", "lib", "python3.11", "site-packages")
	dir := filepath.Join(l.work, "torchserve-"+s.name)
	p := &process{name: "torchserve", port: port, again: true, ready: loopback(port, "/ping"), dir: dir,
		env: []string{"TS_METRICS_MODE=" + mode, "TS_INFERENCE_ADDRESS=" + loopback(port, ""),
			"TS_METRICS_ADDRESS=" + loopback(metrics, ""), "TS_MANAGEMENT_ADDRESS=" + loopback(freePort(), ""),
			"TS_GRPC_INFERENCE_PORT=" + strconv.Itoa(freePort()), "TS_GRPC_MANAGEMENT_PORT=" + strconv.Itoa(freePort()),
			"TS_METRICS_CONFIG=" + l.file("metrics.yaml"), "PYTHONPATH=" + l.file("stub"),
			"LOG_LOCATION=" + filepath.Join(dir, "logs"), "METRICS_LOCATION=" + filepath.Join(dir, "logs"),
			"PATH=" + filepath.Dir(l.python("python")) + ":" + os.Getenv("PATH")},
		args: []string{"java", "-Xmx512m", "-Dmodel_server_home=" + home, "-Djava.io.tmpdir=" + dir, "-cp",
			filepath.Join(home, "ts", "frontend", "model-server.jar"), "org.pytorch.serve.ModelServer", "--python",
			l.python("python"), "-f", l.file("config.properties"), "-s", l.file("store"), "-ncs"}}
	if p.metrics = loopback(metrics, "/metrics"); mode == "log" {
		p.metrics, p.follow = "", "torchserve-log:"+filepath.Join(dir, "logs")
	}
	return []*process{p}
}

// predict asks for a prediction; those of a batch with one that fails have failed.
func predict(ctx context.Context, c *client) func(*rand.Rand) error {
	return func(rnd *rand.Rand) error {
		path, body := "/predictions/toy", map[string]any{"tokens": 1 + rnd.IntN(8), "ms": 1 + rnd.IntN(20)}
		switch rnd.IntN(20) {
		case 0:
			path = "/predictions/nobody"
		case 1:
			body["fail"] = 1
		}
		status, text, err := c.post(ctx, path, body)
		switch {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			c.add("status 404", 1)
			return nil
		case status == http.StatusOK:
			c.add("tokens", float64(body["tokens"].(int)))
		case status >= http.StatusInternalServerError:
			c.add("failed", 1)
		default:
			return fmt.Errorf("predict: status %d, %s", status, text)
		}
		c.add("requests", 1)
		return nil
	}
}
