package scrape

import "github.com/scrapestat/scrapestat/metric"

// word is one metric name of the current body: what the metadata lines say about it, and where its samples are.
type word struct {
	name string
	gen  uint32 // the body this is about

	declared   bool   // there is a metadata line
	help, unit []byte // as in the body
	typ        metric.Type
	typed      bool  // there is a TYPE line
	line       int32 // of the first TYPE line

	first    int32 // line of the first sample, 0 when there is none
	source   owner
	resolved bool // source is set
}

// metadataIndex finds the names of a body. What it allocated for earlier bodies, also of
// other targets, is used again: they mostly have the same names.
type metadataIndex struct {
	byName map[string]*word
	gen    uint32
	count  int // names of the current body
}

// maxIdleWords bounds the names that are kept though the current body has not.
const maxIdleWords = 20_000

// begin forgets the last body.
func (w *metadataIndex) begin() {
	if w.byName == nil || len(w.byName) > 2*w.count+maxIdleWords {
		w.byName = map[string]*word{}
	}
	w.gen++
	w.count = 0
}

// add returns the word of that name, made when the body did not have it.
func (w *metadataIndex) add(name []byte) *word {
	x := w.byName[string(name)]
	if x == nil {
		x = &word{name: string(name)}
		w.byName[x.name] = x
	}
	if x.gen != w.gen {
		*x = word{name: x.name, gen: w.gen}
		w.count++
	}
	return x
}

// find returns the word of that name if the body has it, else nil.
func (w *metadataIndex) find(name []byte) *word {
	if x := w.byName[string(name)]; x != nil && x.gen == w.gen {
		return x
	}
	return nil
}

// typed returns the word of that name if the body declares its type, else nil.
func (w *metadataIndex) typed(name []byte) *word {
	if x := w.find(name); x != nil && x.typed {
		return x
	}
	return nil
}
