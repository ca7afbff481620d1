package metric

// Event is one instant in the life of a client-side request, or of the session that sends them, as a load
// generator records it. Names and the form of Data are those of MLPerf's endpoints benchmark.
type Event struct {
	Sample       string // the request's id; "" for events of the session
	Type         string // "sample.issued", "sample.recv_first", ...: see package events
	AtNS         int64  // nanoseconds since 1970, of one anchor plus a monotonic clock
	Conversation string
	Turn         int // within the conversation, when HasTurn
	HasTurn      bool
	Data         []byte // JSON, or empty
}
