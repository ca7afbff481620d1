package rundb

import (
	"encoding/json"
	"fmt"
	"sort"
	"time"
)

// Meta describes a recording and the settings it was made with. Nothing in it is secret.
type Meta struct {
	ID       string            // of the run
	Version  string            // of the tool that records
	Command  []string          // redacted command line
	Tags     map[string]string // the user's own
	OriginNS int64             // start of the run, nanoseconds since 1970

	Interval, Timeout, Warmup, Cooldown, Settle, Slice time.Duration

	Host   string
	Limits map[string]int64 // by name, 0 is "no limit"

	// BootID is that of the machine's last start, BootNS its monotonic clock at OriginNS; "" and 0 where that is
	// not known, and where the times are not of a machine that records.
	BootID string
	BootNS int64

	// Window is the part of the run that is analysed by default, as a selector; "" leaves that to the analysis.
	Window string
	// Traffic is when the targets had requests, as package traffic writes it; "" where the recorder did not find out.
	// Create ignores it, see Writer.SetTraffic.
	Traffic string

	// Shard is which of the targets a collector polled; nil of all. Group is the run that the shards are parts of.
	Shard *Shard
	Group string

	// EndNS is when the writer was closed; 0 in a recording that is still being
	// written or was killed. Create ignores it and Polls.
	EndNS int64
	// Polls has how many polls each target had when the writer was closed.
	Polls []int
}

// Shard is one of N parts of the targets of a run: those whose labels By have I as their hash modulo N.
type Shard struct {
	I  int      `json:"i"`
	N  int      `json:"n"`
	By []string `json:"by"`
}

// metaFields lists the keys of table meta and where their values go.
func metaFields(m *Meta) map[string]any {
	return map[string]any{
		"id": &m.ID, "version": &m.Version, "command": &m.Command, "tags": &m.Tags, "origin_ns": &m.OriginNS,
		"interval_ns": &m.Interval, "timeout_ns": &m.Timeout, "warmup_ns": &m.Warmup, "cooldown_ns": &m.Cooldown,
		"settle_ns": &m.Settle, "slice_ns": &m.Slice, "host": &m.Host, "limits": &m.Limits, "end_ns": &m.EndNS,
		"boot_id": &m.BootID, "boot_ns": &m.BootNS, "polls": &m.Polls,
		"window": &m.Window, "traffic": &m.Traffic, "shard": &m.Shard, "group": &m.Group,
	}
}

// replaceMeta sets one row of table meta.
const replaceMeta = "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)"

// metaRows returns the rows of table meta in order of their keys. Texts are
// stored as they are, everything else as JSON.
func metaRows(m Meta) ([][2]string, error) {
	var rows [][2]string
	for k, v := range metaFields(&m) {
		if s, ok := v.(*string); ok {
			rows = append(rows, [2]string{k, *s})
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", k, err)
		}
		rows = append(rows, [2]string{k, string(b)})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return rows, nil
}

// set takes over one row of table meta; unknown keys are those of later versions.
func (m *Meta) set(key, value string) error {
	switch v := metaFields(m)[key].(type) {
	case nil:
		return nil
	case *string:
		*v = value
		return nil
	default:
		if err := json.Unmarshal([]byte(value), v); err != nil {
			return fmt.Errorf("meta %s: %w", key, err)
		}
		return nil
	}
}
