package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// autoTarget stands for the targets that COMMAND itself names.
const autoTarget = "auto"

// loadGenerator is a program whose command line says what it loads.
type loadGenerator struct {
	words   []string // as they follow each other, the first by its base name
	targets func(commandFlags) ([]string, error)
}

func (l *loadGenerator) name() string { return strings.Join(l.words, " ") }

func loadGenerators() []loadGenerator {
	return []loadGenerator{
		{[]string{"vllm", "bench", "serve"}, func(f commandFlags) ([]string, error) { return f.byHost("8000"), nil }},
		{[]string{"aiperf", "profile"}, aiperfTargets},
		{[]string{"guidellm", "run"}, guidellmTargets},
		{[]string{"guidellm", "benchmark"}, guidellmTargets},
		{[]string{"inference-perf"}, inferencePerfTargets},
		{[]string{"sglang.bench_serving"}, func(f commandFlags) ([]string, error) { return f.byHost(sglangPort(f)), nil }},
	}
}

// expandAuto puts what COMMAND names in the place of auto. told is a sentence about it.
func expandAuto(targets, command []string) (out []string, told string, err error) {
	at := slices.Index(targets, autoTarget)
	if at < 0 {
		return targets, "", nil
	}
	found, rest := findGenerator(command)
	if found == nil {
		var names []string
		for _, l := range loadGenerators() {
			names = append(names, l.name())
		}
		return nil, "", usagef("auto: COMMAND is no load generator whose command line is known (looked for %s; a shell "+
			"hides it): name the targets", strings.Join(names, ", "))
	}
	own, err := found.targets(rest)
	if err != nil {
		return nil, "", usagef("auto: %s: %w", found.name(), err)
	}
	for i := range own {
		if own[i], err = metricsURL(own[i]); err != nil {
			return nil, "", usagef("auto: %s: %w", found.name(), err)
		}
	}
	told = fmt.Sprintf("targets from the command line of %s: %s", found.name(), strings.Join(redactArgs(own), " "))
	return slices.Concat(targets[:at], own, targets[at+1:]), told, nil
}

// findGenerator finds the program in a command line, also behind others that start it, and what follows it.
func findGenerator(command []string) (*loadGenerator, commandFlags) {
	for i, word := range command {
		base := strings.TrimSuffix(filepath.Base(word), ".exe")
		if slices.Contains([]string{"sh", "bash", "dash", "zsh", "fish", "ksh"}, base) {
			return nil, nil
		}
		for _, l := range loadGenerators() {
			n := len(l.words)
			if base == l.words[0] && len(command) >= i+n && slices.Equal(command[i+1:i+n], l.words[1:]) {
				return &l, command[i+n:]
			}
		}
	}
	return nil, nil
}

// commandFlags are the arguments of a load generator.
type commandFlags []string

// all returns the values of a flag by any of its names, as --x=v, --x v and --x v w.
func (f commandFlags) all(names ...string) (out []string) {
	for i, arg := range f {
		if name, value, ok := strings.Cut(arg, "="); ok && slices.Contains(names, name) {
			out = append(out, value)
		} else if slices.Contains(names, arg) {
			for _, v := range f[i+1:] {
				if strings.HasPrefix(v, "-") {
					break
				}
				out = append(out, v)
			}
		}
	}
	return out
}

// last returns the value of a flag, or fallback: the last one counts.
func (f commandFlags) last(fallback string, names ...string) string {
	value := fallback
	for i, arg := range f {
		if name, v, ok := strings.Cut(arg, "="); ok && slices.Contains(names, name) {
			value = v
		} else if slices.Contains(names, arg) && i+1 < len(f) {
			value = f[i+1]
		}
	}
	return value
}

// byHost is the target of --base-url, else of --host and --port.
func (f commandFlags) byHost(port string) []string {
	host := net.JoinHostPort(f.last("127.0.0.1", "--host"), f.last(port, "--port"))
	return []string{cmp.Or(f.last("", "--base-url"), "http://"+host)}
}

func sglangPort(f commandFlags) string {
	switch backend := f.last("sglang", "--backend"); {
	case strings.HasPrefix(backend, "vllm"), backend == "trt":
		return "8000"
	case strings.HasPrefix(backend, "lmdeploy"):
		return "23333"
	}
	return "30000"
}

// aiperfTargets keeps the paths of what it scrapes itself.
func aiperfTargets(f commandFlags) ([]string, error) {
	out := f.all("--url", "-u")
	if len(out) == 0 {
		out = []string{"localhost:8000"}
	}
	for _, text := range f.all("--server-metrics") {
		if strings.ContainsAny(text, ":.") {
			out = append(out, keptPath+text)
		}
	}
	return out, nil
}

func guidellmTargets(f commandFlags) ([]string, error) {
	text := f.last("", "--target")
	for _, backend := range f.all("--backend") {
		var settings struct {
			Target string `json:"target"`
		}
		if json.Unmarshal([]byte(backend), &settings) == nil {
			text = cmp.Or(settings.Target, text)
		}
		for part := range strings.SplitSeq(backend, ",") {
			if value, ok := strings.CutPrefix(part, "target="); ok {
				text = value
			}
		}
	}
	return []string{cmp.Or(text, "http://localhost:8000")}, nil
}

func inferencePerfTargets(f commandFlags) ([]string, error) {
	path := f.last("", "--config_file", "--config-file", "-c")
	if path == "" {
		return nil, fmt.Errorf("--config_file is not given, so that nothing says what it loads")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var config struct {
		Server struct {
			BaseURL string `yaml:"base_url"`
		} `yaml:"server"`
	}
	if err := yaml.NewDecoder(io.LimitReader(file, 1<<20)).Decode(&config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if config.Server.BaseURL == "" {
		return nil, fmt.Errorf("%s has no server.base_url", path)
	}
	return []string{config.Server.BaseURL}, nil
}

// keptPath begins an address whose path is that of the metrics.
const keptPath = "path:"

// metricsURL is where the metrics of an address are: the path of an API is cut.
func metricsURL(text string) (string, error) {
	text, kept := strings.CutPrefix(text, keptPath)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%s is no address of a server", redactArgs([]string{text})[0])
	}
	if !kept || u.Path == "" {
		u.Path = "/metrics"
	}
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u.String(), nil
}
