package discover

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/scrapestat/scrapestat/scrape"
)

// Shard is one of N parts of all targets: those of which the labels By, joined with ";", have the hash I modulo N. The
// hash is that of Prometheus' relabel action hashmod, so that its agents have the same parts. The zero value has all.
type Shard struct {
	I, N int
	By   []string // nil for the address
}

// maxShards is how many parts there may be.
const maxShards = 100_000

// ParseShard reads "I/N", with I from 0.
func ParseShard(text string) (Shard, error) {
	first, second, ok := strings.Cut(text, "/")
	i, err := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second)
	if !ok || err != nil || err2 != nil || n < 1 || n > maxShards || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("%q: want I/N, as in 0/8 to 7/8", text)
	}
	return Shard{I: i, N: n}, nil
}

// Labels are those whose values are hashed.
func (s Shard) Labels() []string {
	if len(s.By) == 0 {
		return []string{model.AddressLabel}
	}
	return s.By
}

// has reports whether a target of these labels is of the shard.
func (s Shard) has(label func(name string) string) bool {
	if s.N == 0 {
		return true
	}
	var values []string
	for _, name := range s.Labels() {
		values = append(values, label(name))
	}
	sum := md5.Sum([]byte(strings.Join(values, ";")))
	return binary.BigEndian.Uint64(sum[8:])%uint64(s.N) == uint64(s.I)
}

// Of returns those of the targets that are of the shard. The address of a target that was named is that in its URL.
func (s Shard) Of(targets []scrape.Target) []scrape.Target {
	return slices.DeleteFunc(slices.Clone(targets), func(t scrape.Target) bool {
		return !s.has(func(name string) string {
			if name != model.AddressLabel {
				value, _ := t.Labels.Get(name)
				return value
			}
			if u, err := url.Parse(t.URL); err == nil && u.Host != "" {
				return u.Host
			}
			return t.URL
		})
	})
}
