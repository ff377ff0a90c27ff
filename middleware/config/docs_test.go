package config_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

const docs = "../../docs/configuration.md"

// comments returns the doc comments of a struct's fields by json tag. A field without one shares that of the field above.
func comments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		above := ""
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if text := strings.Join(strings.Fields(f.Doc.Text()), " "); text != "" {
				above = text
			}
			tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
			out[tag] = above
		}
		return false
	})
	return out
}

func kind(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Pointer:
		return t.Elem().String()
	}
	return t.String()
}

func defaultOf(key string) string {
	v := reflect.ValueOf(middleware.Config{}.WithDefaults())
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") != key {
			continue
		}
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.IsZero() && f.Kind() != reflect.Bool {
			return ""
		}
		return fmt.Sprintf("`%v`", f.Interface())
	}
	return ""
}

func page(t *testing.T) string {
	t.Helper()
	text := map[string]map[string]string{
		"observationalMemory": comments(t, "../config.go", "Config"),
		"database":            comments(t, "config.go", "Database"),
	}
	var b strings.Builder
	b.WriteString(`# Configuration

The core takes a Go struct, ` + "`middleware.Config`" + `; a zero field takes its default. Package ` + "`middleware/config`" + ` loads it from a YAML file and
the environment, the latter with precedence. Keys and variables that do not exist are faults, as are values of a wrong type;
all faults are reported at once. Durations have a unit: ` + "`500ms`, `2s`, `1m`" + `. A list in a variable has commas between its words.

This page is generated from the comments of the struct (` + "`go test ./middleware/config -update`" + `) and a test compares them.

` + "```yaml" + `
observationalMemory:
  enabled: true
  provider: gemini
  model: gemini-2.5-flash
database:
  dsn: memory.db
` + "```\n")
	section := ""
	for _, f := range config.Fields(reflect.TypeFor[config.Settings]()) {
		if f.Path[0] != section {
			section = f.Path[0]
			fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | meaning |\n|---|---|---|---|\n", section)
		}
		meaning := text[section][f.Path[1]]
		if meaning == "" {
			t.Errorf("%s has no comment", strings.Join(f.Path, "."))
		}
		def := ""
		if section == "observationalMemory" {
			def = defaultOf(f.Path[1])
		}
		fmt.Fprintf(&b, "| `%s`<br>`%s%s` | %s | %s | %s |\n", f.Path[1], config.DefaultPrefix, f.Variable, kind(f.Type), def,
			strings.ReplaceAll(meaning, "|", "\\|"))
	}
	return b.String()
}

func TestDocs(t *testing.T) {
	t.Parallel()
	t.Run("CFG-1 docs/configuration.md names every field with its default and comment", func(t *testing.T) {
		t.Parallel()
		want := page(t)
		if *update {
			if err := os.WriteFile(docs, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(docs)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Error("docs/configuration.md is not what the comments say; run go test ./middleware/config -update")
		}
	})
}
