package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// getTargets is the child process that does the least a scraper can do: GET each target on a schedule and read the
// body. It prints a line when it starts, and when the time is over how late requests of all but the first quarter were
// sent, in nanoseconds in ascending order.
func getTargets(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 3 {
		return errors.New("get wants an interval, a length and URLs")
	}
	every, err1 := time.ParseDuration(args[0])
	length, err2 := time.ParseDuration(args[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	fmt.Fprintln(out, "started")
	urls := args[2:]
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(urls), DisableCompression: true}}
	late, failed := make([][]time.Duration, len(urls)), make([]error, len(urls))
	origin := time.Now()
	var all sync.WaitGroup
	for i, url := range urls {
		all.Go(func() {
			due := origin.Add(every * time.Duration(i) / time.Duration(len(urls)))
			var body []byte
			for ; due.Sub(origin) < length && failed[i] == nil; due = due.Add(every) {
				if pause(ctx, time.Until(due)) != nil {
					return
				}
				if due.Sub(origin) > length/4 {
					late[i] = append(late[i], time.Since(due))
				}
				body, failed[i] = get(ctx, client, url, body[:0])
			}
		})
	}
	all.Wait()
	for _, d := range slices.Sorted(slices.Values(slices.Concat(late...))) {
		fmt.Fprintf(out, "%d ", d.Nanoseconds())
	}
	fmt.Fprintln(out)
	return errors.Join(failed...)
}

// get reads a body into buf.
func get(ctx context.Context, client *http.Client, url string, buf []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return buf, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return buf, err
	}
	defer resp.Body.Close()
	buf = slices.Grow(buf, int(max(0, resp.ContentLength)))[:max(0, resp.ContentLength)]
	_, err = io.ReadFull(resp.Body, buf)
	return buf, err
}
