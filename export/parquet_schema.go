package export

import (
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// tableColumn is one top-level column of a table.
type tableColumn struct {
	name     string
	node     parquet.Node
	pageRows int
}

// leaves returns how many columns of values the column has: 2 for a map.
func (c tableColumn) leaves() int {
	if c.node.Leaf() {
		return 1
	}
	return 2
}

// optional makes a column that may hold nulls. Columns that never do are optional
// too, as pyarrow writes them; the library also allots a whole page for others.
func (c tableColumn) optional() tableColumn {
	c.node = parquet.Optional(c.node)
	return c
}

// textColumn is dictionary coded: most texts are the same for whole series.
func textColumn(name string) tableColumn {
	return tableColumn{name, parquet.Encoded(parquet.String(), &parquet.RLEDictionary), 64 << 10}
}

// doubleColumn is split into byte streams: neighbouring values share sign,
// exponent and the upper mantissa, which zstd then finds.
func doubleColumn(name string) tableColumn {
	return tableColumn{name, parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.ByteStreamSplit), 64 << 10}
}

// steadyColumn is a doubleColumn whose values come in runs, as the sum of a
// histogram does for each of its buckets. In big pages zstd takes the runs of the
// streams for matches, which costs more than it saves (measured: 0.29 instead of
// 0.25 bytes per row).
func steadyColumn(name string) tableColumn {
	c := doubleColumn(name)
	c.pageRows = 16 << 10
	return c
}

// timeColumn is plain in big pages: all series of a target have the same times,
// which compress to nothing where a page has them twice.
func timeColumn(name string, node parquet.Node) tableColumn {
	return tableColumn{name, parquet.Encoded(node, &parquet.Plain), 256 << 10}
}

// tableNode is a group whose columns keep their order; a parquet.Group is a map
// and sorts them by name.
type tableNode struct {
	parquet.Group
	fields []parquet.Field
}

func newTableNode(columns []tableColumn) tableNode {
	n := tableNode{Group: parquet.Group{}}
	for _, c := range columns {
		n.Group[c.name] = c.node
		n.fields = append(n.fields, tableField{c.node, c.name})
	}
	return n
}

// Fields returns the columns in their order.
func (n tableNode) Fields() []parquet.Field { return n.fields }

// GoType is of no use for rows that are written by columns. The type a Group
// makes of its names fails on those that only differ in case.
func (n tableNode) GoType() reflect.Type { return reflect.TypeFor[map[string]any]() }

type tableField struct {
	parquet.Node
	name string
}

// Name returns the name of the column.
func (f tableField) Name() string { return f.name }

// Value is needed for writing Go values only.
func (f tableField) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}

// some makes v a present value of an optional column.
func someValue(column int, v parquet.Value) parquet.Value { return v.Level(0, 1, column) }

// none is the null of an optional column.
func noValue(column int) parquet.Value { return parquet.Value{}.Level(0, 0, column) }
