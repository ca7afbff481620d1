package join

import (
	"context"
	"fmt"
	"iter"
	"math"
)

// Flat is a Row as files have it: a request of a client with what servers tell of it, or a record without a client.
// Times end in _s, seconds, or _ns, instants: those of clients since 1970, those of servers on their own clock. What is
// not known is null.
type Flat struct {
	ID            string   `json:"id" parquet:"id"`
	ServerID      string   `json:"server_id,omitempty" parquet:"server_id"` // of a record without a client
	JoinedBy      string   `json:"joined_by,omitempty" parquet:"joined_by,dict"`
	Records       int64    `json:"records" parquet:"records"`
	Status        string   `json:"status,omitempty" parquet:"status,dict"`
	Endpoint      string   `json:"endpoint,omitempty" parquet:"endpoint,dict"`
	Model         string   `json:"model,omitempty" parquet:"model,dict"`
	Phase         string   `json:"phase,omitempty" parquet:"phase,dict"`
	Worker        string   `json:"worker,omitempty" parquet:"worker,dict"`
	Replica       string   `json:"replica,omitempty" parquet:"replica,dict"`
	Stage         string   `json:"stage,omitempty" parquet:"stage,dict"`
	IssuedNS      *int64   `json:"issued_ns" parquet:"issued_ns,optional"`
	FirstNS       *int64   `json:"first_ns" parquet:"first_ns,optional"`
	CompleteNS    *int64   `json:"complete_ns" parquet:"complete_ns,optional"`
	ArrivalNS     *int64   `json:"server_arrival_ns" parquet:"server_arrival_ns,optional"`
	ServerFirstNS *int64   `json:"server_first_ns" parquet:"server_first_ns,optional"`
	FinishNS      *int64   `json:"server_finish_ns" parquet:"server_finish_ns,optional"`
	ClientTTFT    *float64 `json:"client_ttft_s" parquet:"client_ttft_s,optional"`
	Outside       *float64 `json:"outside_s" parquet:"outside_s,optional"`
	Front         *float64 `json:"front_s" parquet:"front_s,optional"`
	Queue         *float64 `json:"queue_s" parquet:"queue_s,optional"`
	Prefill       *float64 `json:"prefill_s" parquet:"prefill_s,optional"`
	Decode        *float64 `json:"decode_s" parquet:"decode_s,optional"`
	ServerTTFT    *float64 `json:"server_ttft_s" parquet:"server_ttft_s,optional"`
	ClientE2E     *float64 `json:"client_e2e_s" parquet:"client_e2e_s,optional"`
	OutsideE2E    *float64 `json:"outside_e2e_s" parquet:"outside_e2e_s,optional"`
	ServerE2E     *float64 `json:"server_e2e_s" parquet:"server_e2e_s,optional"`
	OffsetLo      *float64 `json:"offset_lo_s" parquet:"offset_lo_s,optional"`
	OffsetHi      *float64 `json:"offset_hi_s" parquet:"offset_hi_s,optional"`
	Prompt        *int64   `json:"prompt_tokens" parquet:"prompt_tokens,optional"`
	Cached        *int64   `json:"cached_tokens" parquet:"cached_tokens,optional"`
	Output        *int64   `json:"output_tokens" parquet:"output_tokens,optional"`
	Preempted     *int64   `json:"preempted" parquet:"preempted,optional"`
	Contradictory bool     `json:"contradictory" parquet:"contradictory"`
}

// Flat returns the row as files have it.
func (x *Row) Flat() Flat {
	out := Flat{JoinedBy: x.JoinedBy, Records: int64(x.Parts), Worker: x.Place.Worker, Replica: x.Place.Replica,
		Stage: x.Place.Stage, Model: x.Place.Model, ArrivalNS: instant(x.ServerArrival),
		ServerFirstNS: instant(x.ServerFirst), FinishNS: instant(x.ServerFinish), ClientTTFT: finite(x.ClientTTFT),
		Outside: finite(x.Outside),
		Front:   finite(x.Front), Queue: finite(x.Queue), Prefill: finite(x.Prefill), Decode: finite(x.Decode),
		ServerTTFT: finite(x.ServerTTFT), ClientE2E: finite(x.ClientE2E), OutsideE2E: finite(x.OutsideE2E),
		ServerE2E: finite(x.ServerE2E), OffsetLo: finite(x.OffsetLo), OffsetHi: finite(x.OffsetHi),
		Prompt: count(x.Prompt), Cached: count(x.Cached), Output: count(x.Output), Preempted: count(x.Preempted),
		Contradictory: x.Contradictory}
	if q := x.Client; q != nil {
		out.ID, out.Status, out.Endpoint, out.Phase = q.ID, q.Status.String(), q.Endpoint, q.Phase
		out.IssuedNS, out.FirstNS, out.CompleteNS = instant(q.IssuedNS), instant(q.FirstNS), instant(q.CompleteNS)
		if q.Model != "" {
			out.Model = q.Model
		}
	}
	return out
}

func instant(ns int64) *int64 {
	if ns == 0 {
		return nil
	}
	return &ns
}

func count(n int) *int64 {
	if n < 0 {
		return nil
	}
	v := int64(n)
	return &v
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// All returns the clients of the window in order of issue, then the records of no client.
func (r *Requests) All(ctx context.Context, rec Records) iter.Seq2[Flat, error] {
	return func(yield func(Flat, error) bool) {
		for i := range r.m.clients {
			if r.m.within(&r.m.clients[i]) && !yield(r.m.row(i).Flat(), nil) {
				return
			}
		}
		for q, err := range rec.ServerRequests(ctx) {
			if err != nil {
				yield(Flat{}, fmt.Errorf("read records of requests: %w", err))
				return
			}
			if _, n, _ := r.m.keys.of(q, r.m.internal(q)); n == 1 {
				continue
			}
			s := newServed(q, 0, 0)
			x := Row{Parts: 1, Place: q.ServerPlace, ServerArrival: s.arrival, ServerFirst: s.first, ServerFinish: s.finish,
				Prompt: int(s.prompt), Cached: int(s.cached), Output: int(s.output), Preempted: int(s.preempted)}
			x.unknown()
			x.durations(&s)
			out := x.Flat()
			out.ServerID = q.ID
			if !yield(out, nil) {
				return
			}
		}
	}
}
