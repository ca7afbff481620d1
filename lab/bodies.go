//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// moved calls f and returns what each counter, histogram and summary of the bodies gained meanwhile. What moves at
// rest too is left out, and what is of the process.
func moved(ctx context.Context, all []*process, f func() error) (rows []row, err error) {
	var at [4]map[string]float64 // two before f and two after it
	for i := range at {
		if i == 2 {
			err = f()
		} else if i > 0 {
			err = pause(ctx, time.Second)
		}
		if err == nil {
			at[i], err = totals(ctx, all)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, ask := range slices.Sorted(maps.Keys(at[3])) {
		own := strings.HasPrefix(ask, "process_") // its clock may stand still for a second
		if !own && at[0][ask] == at[1][ask] && at[2][ask] == at[3][ask] {
			rows = append(rows, row{Ask: ask, Value: at[3][ask] - at[0][ask], Within: 1e-9, many: true})
		}
	}
	return rows, nil
}

// totals reads the bodies of all processes, as simply as can be, and adds up the series of each family: what the
// quantity is called in a gate, and its value.
func totals(ctx context.Context, all []*process) (map[string]float64, error) {
	sums := map[string]float64{}
	for _, p := range all {
		if p.metrics == "" {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
		if err != nil {
			return nil, err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		err = addBody(sums, bufio.NewScanner(res.Body))
		res.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", p.metrics, err)
		}
	}
	return sums, nil
}

func addBody(sums map[string]float64, lines *bufio.Scanner) error {
	kinds := map[string]string{}
	for lines.Scan() {
		line := lines.Text()
		if words := strings.Fields(line); len(words) == 4 && words[1] == "TYPE" {
			kinds[words[2]] = words[3]
			continue
		}
		end := strings.IndexAny(line, "{ ")
		if end < 1 || line[0] == '#' {
			continue
		}
		ask := ""
		name := line[:end]
		for _, stat := range []string{"count", "sum"} {
			family, found := strings.CutSuffix(name, "_"+stat)
			if kind := kinds[family]; found && (kind == "histogram" || kind == "summary") {
				ask = family + " " + stat
			}
		}
		if kinds[name] == "counter" {
			ask = strings.TrimSuffix(name, "_total") + " total"
		}
		if ask == "" || strings.Contains(name, "_created") {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return err
		}
		sums[ask] += value
	}
	return lines.Err()
}
