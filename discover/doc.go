// Package discover finds targets: those of a Prometheus configuration and the inference pods of a Kubernetes cluster,
// each with its authentication, TLS settings and relabelling.
//
// A caller reads the configuration once and asks again and again who is there:
//
//	d, err := discover.Load("prometheus.yml", discover.Options{})
//	found := d.Refresh(ctx) // Targets, and Warnings about what was not understood
//	defer d.Close()
//
// Refresh does what is due: files are looked at each time and read when they have changed, servers are asked at their
// refresh intervals. A source that cannot be read keeps the targets it had, and is named. The package starts no
// goroutine; one caller at a time may use a Discoverer.
//
// # What is read
//
// scrape_configs with static, file, http, dns and kubernetes (pod, endpoints) discovery. What is not understood is
// listed with file, line and key, never ignored silently.
//
// # Secrets
//
// A [Secret] cannot be printed. Secrets in files are read again when they are used, so that they may rotate during a
// run. Every [Client] remembers what it has sent and takes it out of messages.
//
// # Limits
//
// Configuration and target files have at most 4 MiB, answers 32 MiB, a run
// 10,000 targets at a time. Discovered addresses that are link-local are refused.
package discover
