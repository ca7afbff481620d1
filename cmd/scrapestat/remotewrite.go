package main

import (
	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// remoteWriteFlags name where every sample is sent as well.
type remoteWriteFlags struct {
	url, version string
	labels       map[string]string
	auth         authFlags
	client       *discover.Client // of auth, with what is unsafe about it
	unsafe       []metric.Warning
}

func (r *remoteWriteFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.url, "remote-write", "",
		"also send every sample to this `URL` of a Prometheus-compatible store, such as http://host:9090/api/v1/write")
	f.StringVar(&r.version, "remote-write-version", promstore.WriteAuto, "`version` of remote write: auto, 1 or 2")
	f.StringToStringVar(&r.labels, "remote-write-label", nil,
		"label `K=V` of every series sent, besides job, instance and target (repeatable)")
	r.auth.register(f, "remote-write-", "the receiver of remote write")
}

// open makes the writer; nil without --remote-write.
func (r *remoteWriteFlags) open() (*promstore.RemoteWriter, error) {
	if r.url == "" {
		return nil, nil
	}
	header, client, unsafe, err := r.auth.open()
	if err != nil {
		return nil, err
	}
	w, err := promstore.NewWriter(promstore.WriterOptions{URL: r.url, Version: r.version, Labels: r.labels, Header: header,
		Transport: client, Redact: client.Redact})
	if err != nil {
		return nil, usagef("--remote-write: %w", err)
	}
	r.client, r.unsafe = client, unsafe
	return w, nil
}

// close closes the connections to the receiver.
func (r *remoteWriteFlags) close() {
	if r.client != nil {
		r.client.CloseIdleConnections()
	}
}
