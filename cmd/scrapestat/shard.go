package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// shardFlags say which part of the targets a collector has.
type shardFlags struct {
	text, group string
	by          []string
	shard       discover.Shard // of text, set by validate
}

func (o *shardFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.text, "shard", "", "poll part `I/N` of the targets, I from 0, by the hash of their addresses; auto "+
		"takes both from a Kubernetes Job or StatefulSet or a Slurm array, N of the former two from SCRAPESTAT_SHARDS")
	f.StringSliceVar(&o.by, "shard-by", nil, "`labels` whose hash decides in place of the address")
	f.StringVar(&o.group, "run-id", "", "`name` of the run that the shards are parts of")
}

func (o *shardFlags) validate() (err error) {
	text := o.text
	switch {
	case text == "" && (o.by != nil || o.group != ""):
		return usagef("--shard-by and --run-id need --shard")
	case text == "":
		return nil
	case o.group == "":
		return usagef("--shard needs --run-id, by which its parts find each other")
	case text == "auto":
		if text, err = shardOf(os.Getenv); err != nil {
			return usagef("--shard auto: %w", err)
		}
	}
	if o.shard, err = discover.ParseShard(text); err != nil {
		return usagef("--shard %w", err)
	}
	o.shard.By = o.by
	return nil
}

// meta is what the recording has of it.
func (o *shardFlags) meta() *rundb.Shard {
	if o.text == "" {
		return nil
	}
	return &rundb.Shard{I: o.shard.I, N: o.shard.N, By: o.shard.Labels()}
}

// shardOf finds out which part this process is, by what started it.
func shardOf(env func(string) string) (string, error) {
	if id := env("SLURM_ARRAY_TASK_ID"); id != "" {
		i, err := strconv.Atoi(id)
		first, err2 := strconv.Atoi(cmp.Or(env("SLURM_ARRAY_TASK_MIN"), "0"))
		n := cmp.Or(env("SCRAPESTAT_SHARDS"), env("SLURM_ARRAY_TASK_COUNT"))
		if err != nil || err2 != nil || n == "" {
			return "", fmt.Errorf("SLURM_ARRAY_TASK_ID=%s, SLURM_ARRAY_TASK_MIN=%s and SLURM_ARRAY_TASK_COUNT=%s are no part "+
				"of an array", id, env("SLURM_ARRAY_TASK_MIN"), n)
		}
		return fmt.Sprintf("%d/%s", i-first, n), nil
	}
	i, n := env("JOB_COMPLETION_INDEX"), env("SCRAPESTAT_SHARDS")
	if host := env("HOSTNAME"); i == "" {
		if at := strings.LastIndexByte(host, '-'); at >= 0 {
			if _, err := strconv.ParseUint(host[at+1:], 10, 31); err == nil {
				i = host[at+1:] // of a StatefulSet
			}
		}
	}
	if i == "" || n == "" {
		return "", fmt.Errorf("neither JOB_COMPLETION_INDEX=%q nor HOSTNAME=%q, with SCRAPESTAT_SHARDS=%q, nor "+
			"SLURM_ARRAY_TASK_ID name a part", env("JOB_COMPLETION_INDEX"), env("HOSTNAME"), n)
	}
	return i + "/" + n, nil
}

// uniteMarks gives each shard the marks that somebody set on any of its group: of one name within a second, the first.
func uniteMarks(runs []*watched) {
	const same = int64(time.Second)
	var all []metric.Mark
	for _, r := range runs {
		for _, m := range r.Run.Marks() {
			if r.Meta().Shard != nil && !m.Own() {
				all = append(all, m)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b metric.Mark) int { return cmp.Compare(a.AtNS, b.AtNS) })
	var united []metric.Mark
	for _, m := range all {
		if !slices.ContainsFunc(united, func(u metric.Mark) bool {
			return u.Name == m.Name && u.Kind == m.Kind && m.AtNS-u.AtNS <= same
		}) {
			united = append(united, m)
		}
	}
	for _, r := range runs {
		if r.Meta().Shard == nil {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(r.Run.Marks()), func(m metric.Mark) bool { return !m.Own() })
		r.marks = append(own, united...)
		slices.SortStableFunc(r.marks, func(a, b metric.Mark) int { return cmp.Compare(a.AtNS, b.AtNS) })
	}
}

// checkShards refuses what are not the parts of one run, and tells what is missing. Recordings without a shard are
// those of collectors that divided the targets by hand.
func checkShards(runs []*rundb.Run, dirs []string) (missing []metric.Warning, err error) {
	at := map[int]string{}
	var first *rundb.Run
	for i, r := range runs {
		m := r.Meta()
		if m.Shard == nil {
			continue
		}
		if first == nil {
			first = r
		}
		f := first.Meta()
		switch was, twice := at[m.Shard.I]; {
		case m.Group != f.Group:
			return nil, usagef("%s is a shard of %s, not of %s", dirs[i], m.Group, f.Group)
		case m.Shard.N != f.Shard.N || !slices.Equal(m.Shard.By, f.Shard.By):
			return nil, usagef("%s is one of %d shards by %s, others of %d by %s", dirs[i], m.Shard.N,
				strings.Join(m.Shard.By, ","), f.Shard.N, strings.Join(f.Shard.By, ","))
		case twice:
			return nil, usagef("%s and %s are both shard %d of %d", was, dirs[i], m.Shard.I, m.Shard.N)
		}
		at[m.Shard.I] = dirs[i]
	}
	if first == nil || len(runs) == 1 {
		return nil, nil
	}
	var lacks []string
	n := first.Meta().Shard.N
	for i := range n {
		if at[i] == "" && len(lacks) < 20 {
			lacks = append(lacks, strconv.Itoa(i))
		}
	}
	elsewhere := func(r *rundb.Run) bool { return r.Meta().Host != runs[0].Meta().Host }
	if other := slices.IndexFunc(runs, elsewhere); other > 0 {
		missing = append(missing, metric.Warnf("clock_unknown", "the shards were recorded on several hosts, whose clocks "+
			"nobody compared: windows of %s and %s may be apart", dirs[0], dirs[other]))
	}
	if len(at) < n {
		missing = append(missing, metric.Warnf("shard_missing", "of the %d shards of %s %d are missing: %s", n,
			first.Meta().Group, n-len(at), strings.Join(lacks, ", ")))
	}
	return missing, nil
}
