package events

// The types of events, by the names of MLPerf's endpoints benchmark since 2026. Those of the session come without a
// sample.
const (
	SessionStarted  = "session.started"
	SessionEnded    = "session.ended"
	StopLoad        = "session.stop_loadgen"
	StartTracking   = "session.start_performance_tracking"
	StopTracking    = "session.stop_performance_tracking"
	SampleIssued    = "sample.issued"
	SampleFirst     = "sample.recv_first" // the first chunk with content
	SampleNext      = "sample.recv_non_first"
	SampleComplete  = "sample.complete"
	ErrorGeneric    = "error.generic"
	ErrorLoadGen    = "error.loadgen"
	ErrorSession    = "error.session"
	ErrorClient     = "error.client"
	SampleUpstream  = "sample.upstream_sent" // ours: a proxy has passed the request on
	SampleFirstByte = "sample.first_byte"    // ours: before the first chunk with content
	SessionNote     = "session.note"         // ours: a Detail that says by which rules the session is meant
	SampleDetail    = "sample.detail"        // ours: a Detail, before the end of the request
)

// legacyTypes are the names until April 2026, which are still found in files. Those that are not here had no
// successor.
var legacyTypes = map[string]string{
	"test_started":              SessionStarted,
	"test_ended":                SessionEnded,
	"loadgen_stop":              StopLoad,
	"stop_performance_tracking": StopTracking,
	"loadgen_issue_called":      SampleIssued,
	"first_chunk_received":      SampleFirst,
	"non_first_chunk_received":  SampleNext,
	"complete":                  SampleComplete,
	"error":                     ErrorGeneric,
}

// Current returns the name that an event type has today. legacy reports whether it was the old one; an unknown type
// keeps its name.
func Current(name string) (current string, legacy bool) {
	if c, ok := legacyTypes[name]; ok {
		return c, true
	}
	return name, false
}
