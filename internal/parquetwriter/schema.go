package parquetwriter

import (
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Column is one column of values. Its rows may be null, except in a list and in the two columns of a map, whose rows
// have any number of values.
type Column struct {
	path     []string // one name, or three in a list or map
	physical format.Type
	logical  format.LogicalTypeValue // may be nil
	split    bool                    // byte streams instead of a dictionary; doubles only
	plain    bool                    // no dictionary
	Bounds   bool                    // minimum and maximum in the footer
	Bloom    bool                    // a Bloom filter per row group; texts only
}

func (c *Column) repeats() bool { return len(c.path) > 1 }

// Text has a dictionary: most texts are the same for whole series.
func Text(name string) Column {
	return Column{path: []string{name}, physical: format.ByteArray, logical: &format.StringType{}}
}

// Map are the keys and the values of a map from text to text.
func Map(name string) []Column {
	key, value := Text(name), Text(name)
	key.path, value.path = []string{name, "key_value", "key"}, []string{name, "key_value", "value"}
	return []Column{key, value}
}

// List has any number of values of a column in a row. Its values have no dictionary: neighbours are near each other.
func List(of Column) Column {
	of.path, of.plain, of.split, of.Bounds = []string{of.path[0], "list", "element"}, true, false, false
	return of
}

// Double is split into byte streams: neighbouring values share sign,
// exponent and the upper mantissa, which zstd then finds.
func Double(name string) Column {
	return Column{path: []string{name}, physical: format.Double, split: true}
}

// Steady is for doubles that come in runs, as the sum of a histogram does for
// each of its buckets. It has a dictionary, to which a run is one entry.
func Steady(name string) Column {
	return Column{path: []string{name}, physical: format.Double}
}

// Whole has signed integers of 64 bits, which come in runs or again and again, as times do for each series.
func Whole(name string) Column {
	return Column{path: []string{name}, physical: format.Int64, logical: &format.IntType{BitWidth: 64, IsSigned: true},
		Bounds: true}
}

// Small is Whole with 32 bits, of few different ones.
func Small(name string) Column {
	c := Whole(name)
	c.physical, c.logical = format.Int32, &format.IntType{BitWidth: 32, IsSigned: true}
	return c
}

// width is how many bytes a number takes in the dictionary.
func (c *Column) width() int {
	if c.physical == format.Int32 {
		return 4
	}
	return 8
}

// Flag has booleans.
func Flag(name string) Column {
	return Column{path: []string{name}, physical: format.Boolean}
}

// Time has instants in nanoseconds since 1970.
func Time(name string) Column {
	c := Whole(name)
	c.logical = &format.TimestampType{Unit: format.TimeUnit{Value: &format.NanoSeconds{}}}
	return c
}

// Unsigned has unsigned integers of 64 bits.
func Unsigned(name string) Column {
	return Column{path: []string{name}, physical: format.Int64, logical: &format.IntType{BitWidth: 64}}
}

// converted returns the older form of the logical type, if it had one.
func (c *Column) converted() thrift.Null[deprecated.ConvertedType] {
	switch t := c.logical.(type) {
	case *format.StringType:
		return thrift.New(deprecated.UTF8)
	case *format.IntType:
		if t.BitWidth == 32 {
			return thrift.New(deprecated.Int32)
		} else if t.IsSigned {
			return thrift.New(deprecated.Int64)
		}
		return thrift.New(deprecated.Uint64)
	}
	return thrift.Null[deprecated.ConvertedType]{}
}

// element describes the column in the footer.
func (c *Column) element() format.SchemaElement {
	repetition := format.Optional
	if c.repeats() {
		repetition = format.Required
	}
	return format.SchemaElement{Name: c.path[len(c.path)-1], Type: thrift.New(c.physical),
		RepetitionType: thrift.New(repetition),
		ConvertedType:  c.converted(), LogicalType: format.LogicalType{Value: c.logical}}
}

// schemaOf describes all columns in the footer, in their order. All but maps are
// optional, as pyarrow writes them, also those that have no null.
func schemaOf(columns []Column) []format.SchemaElement {
	top := 0
	elements := []format.SchemaElement{{Name: "schema"}}
	for i := range columns {
		c := &columns[i]
		if !c.repeats() || c.path[2] != "value" {
			top++
		}
		if c.repeats() && c.path[2] != "value" {
			outer := format.SchemaElement{Name: c.path[0], RepetitionType: thrift.New(format.Required),
				NumChildren:   thrift.New[int32](1),
				ConvertedType: thrift.New(deprecated.Map), LogicalType: format.LogicalType{Value: &format.MapType{}}}
			inner := format.SchemaElement{Name: c.path[1], RepetitionType: thrift.New(format.Repeated),
				NumChildren: thrift.New[int32](2)}
			if c.path[2] == "element" {
				outer.ConvertedType, outer.LogicalType.Value = thrift.New(deprecated.List), &format.ListType{}
				inner.NumChildren = thrift.New[int32](1)
			}
			elements = append(elements, outer, inner)
		}
		elements = append(elements, c.element())
	}
	elements[0].NumChildren = thrift.New(int32(top))
	return elements
}
