package simulate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The two files that TorchServe writes metrics to.
const (
	frontendLog = "ts_metrics.log"
	modelLog    = "model_metrics.log"
)

// torchserveLog writes what happens to TorchServe's metric logs: a line for each event. A nil one writes nothing.
type torchserveLog struct {
	w     *world
	write func(file, line string)
}

func newTorchserveLog(w *world) *torchserveLog {
	if w.opt.MetricLog == nil {
		return nil
	}
	return &torchserveLog{w, w.opt.MetricLog}
}

// line writes one event. Dimensions are name:value, separated by commas.
func (l *torchserveLog) line(file, metric, unit string, v float64, dimensions, requests string) {
	if l == nil {
		return
	}
	at := l.w.origin.Add(l.w.now)
	if requests != "" {
		requests = ",requestID:" + requests
	}
	l.write(file, fmt.Sprintf("%s - %s.%s:%s|#%s|#hostname:%s%s,timestamp:%d", at.UTC().Format("2006-01-02T15:04:05,000"),
		metric, unit, appendJava(nil, v), dimensions, torchserveHost, requests, at.Unix()))
}

// host writes an event of the frontend.
func (l *torchserveLog) host(metric, unit string, v float64) {
	l.line(frontendLog, metric, unit, v, "Level:Host", "")
}

// model writes a counter of a model.
func (l *torchserveLog) model(metric, unit string, v float64, name string) {
	l.line(frontendLog, metric, unit, v, "model_name:"+name+",model_version:1.0", "")
}

// handled writes what the handler measured of a batch: one line for all of its requests that did not fail.
func (l *torchserveLog) handled(batch []*task, name string) {
	if l == nil {
		return
	}
	var ids []string
	for _, t := range batch {
		if t.Reason != "error" {
			ids = append(ids, fmt.Sprintf("00000000-0000-4000-8000-%012x", t.ID))
		}
	}
	if len(ids) == 0 {
		return
	}
	dimensions, requests := "ModelName:"+name+",Level:Model", strings.Join(ids, ",")
	l.line(modelLog, "HandlerTime", "ms", hundredths(batch[0].infer), dimensions, requests)
	l.line(modelLog, "PredictionTime", "ms", hundredths(l.w.now-batch[0].Scheduled), dimensions, requests)
}

// hundredths is a duration in milliseconds as TorchServe rounds it.
func hundredths(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 100 }

// MetricLogs are files that grow and rotate as log4j's do: when a line would make one larger than the limit, it gets a
// number after its name and a new file takes its place. Write is for Options.MetricLog. A MetricLogs has one user at a
// time.
type MetricLogs struct {
	dir     string
	largest int64
	files   map[string]*rotated
	err     error
}

type rotated struct {
	*os.File
	size int64
	turn int
}

// NewMetricLogs writes into an existing folder; files rotate beyond that many bytes, never if 0.
func NewMetricLogs(dir string, largest int64) *MetricLogs {
	return &MetricLogs{dir: dir, largest: largest, files: map[string]*rotated{}}
}

// Write appends a line to a file. The first error ends all writing and is returned by Close.
func (m *MetricLogs) Write(file, line string) {
	if m.err != nil {
		return
	}
	f := m.files[file]
	if f == nil {
		f = &rotated{}
		m.files[file] = f
	}
	if f.File != nil && m.largest > 0 && f.size+int64(len(line)) >= m.largest {
		f.turn++
		m.err = errors.Join(f.Close(), os.Rename(f.Name(), fmt.Sprintf("%s.%d", f.Name(), f.turn)))
		f.File, f.size = nil, 0
	}
	if f.File == nil && m.err == nil {
		f.File, m.err = os.OpenFile(filepath.Join(m.dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if m.err == nil {
		var n int
		n, m.err = f.WriteString(line + "\n")
		f.size += int64(n)
	}
}

// Close closes the files and returns the first error of all.
func (m *MetricLogs) Close() error {
	for _, f := range m.files {
		if f.File != nil {
			m.err = errors.Join(m.err, f.Close())
			f.File = nil
		}
	}
	return m.err
}
