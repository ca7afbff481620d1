package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/scrapestat/scrapestat/catalog/pack"
)

// TestSavedPacks holds the packs in the program to their YAML.
func TestSavedPacks(t *testing.T) {
	names, err := filepath.Glob("packs/*.yaml")
	if err != nil || len(names) < 20 {
		t.Fatal(names, err)
	}
	var packs []*pack.Pack
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		more, problems := pack.Read(name, bytes.NewReader(data))
		for _, p := range problems {
			t.Error(p)
		}
		packs = append(packs, more...)
	}
	var want bytes.Buffer
	if err := pack.Save(&want, packs); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("packs.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("packs.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Fatal("packs.json is not what packs/*.yaml tell: run make golden")
	}
	loaded, err := pack.Load(got)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := pack.Save(&again, loaded); err != nil || !bytes.Equal(again.Bytes(), got) {
		t.Error("what was loaded is saved as something else", err)
	}
	a, problems := pack.Join(packs...)
	b, more := pack.Join(loaded...)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	if !reflect.DeepEqual(a.Families(), b.Families()) {
		t.Error("families are others")
	}
	for i, p := range a.Packs() {
		q := b.Packs()[i]
		for j := range p.Quantities {
			if !reflect.DeepEqual(p.Quantities[j], q.Quantities[j]) {
				t.Errorf("%s: quantity %s is another", p.Name, p.Quantities[j].Name)
			}
		}
		if !reflect.DeepEqual(p.Server, q.Server) || len(p.Patterns) != len(q.Patterns) {
			t.Errorf("%s: its server is another", p.Name)
		}
	}
}
