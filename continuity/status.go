package continuity

// Status is how sure an increase is. The worst of several is the largest.
type Status uint8

// The statuses.
const (
	OK         Status = iota // increases only; dips and older copies are left out
	Corrected                // the process restarted; what it did between its last body and its end is unseen
	Born                     // counted from zero, because an earlier complete body lacked the series
	Ambiguous                // two readings differ by more than 1 %; the value is the likelier one
	LowerBound               // a part of the gain is unknown
	Refused                  // the values are those of several processes, which nothing tells apart: no value
)

var statusNames = [...]string{"ok", "corrected", "born", "ambiguous", "lower_bound", "refused"}

// String returns the word of the status as exports and screens spell it.
func (s Status) String() string { return statusNames[min(int(s), len(statusNames)-1)] }

// ParseStatus returns the status of that word; ok is false for any other.
func ParseStatus(word string) (s Status, ok bool) {
	for i, n := range statusNames {
		if n == word {
			return Status(i), true
		}
	}
	return Refused, false
}

// Defined reports whether there is a value.
func (s Status) Defined() bool { return s != Refused }

// Certain reports whether the value is the number itself, which gates and comparisons may judge; --strict ends with
// 4 for the others.
func (s Status) Certain() bool { return s < Ambiguous }
