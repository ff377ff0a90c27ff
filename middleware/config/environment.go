package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/knadh/koanf/parsers/yaml"
)

// Field is one setting.
type Field struct {
	Path     []string // of keys
	Variable string   // of the environment, without the prefix
	Type     reflect.Type
}

// Fields lists the settings of a struct type in the order of its declaration, and those of the structs within it.
func Fields(t reflect.Type) []Field { return fields(t, nil) }

func fields(t reflect.Type, path []string) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(path[:len(path):len(path)], name)
		switch {
		case f.Type.Kind() == reflect.Struct && options == "squash":
			out = append(out, fields(f.Type, path)...)
		case name == "" || name == "-" || !f.IsExported():
		case f.Type.Kind() == reflect.Struct:
			out = append(out, fields(f.Type, at)...)
		default:
			out = append(out, Field{Path: at, Variable: variable(at), Type: f.Type})
		}
	}
	return out
}

// variable is OBSERVATIONAL_MEMORY_MAX_WAIT for observationalMemory.maxWait.
func variable(path []string) string {
	words := make([]string, len(path))
	for i, key := range path {
		var b strings.Builder
		for j, r := range key {
			if j > 0 && unicode.IsUpper(r) {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToUpper(r))
		}
		words[i] = b.String()
	}
	return strings.Join(words, "_")
}

// unknown reports the keys that no setting has, by their path.
func unknown(t reflect.Type, raw map[string]any) []error {
	sections, settings := make(map[string]bool), make(map[string]bool)
	for _, f := range Fields(t) {
		settings[strings.Join(f.Path, ".")] = true
		for i := range f.Path[1:] {
			sections[strings.Join(f.Path[:i+1], ".")] = true
		}
	}
	var errs []error
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			path := prefix + key
			inner, isMap := m[key].(map[string]any)
			switch {
			case sections[path] && isMap:
				walk(path+".", inner)
			case !sections[path] && !settings[path]:
				errs = append(errs, fmt.Errorf("%w: %s does not exist", ErrInvalid, path))
			}
		}
	}
	walk("", raw)
	return errs
}

// environment turns the variables into the map that a file would have given.
func environment(t reflect.Type, src Source) (map[string]any, error) {
	prefix := cmp.Or(src.Prefix, DefaultPrefix)
	known := make(map[string]Field)
	for _, f := range Fields(t) {
		known[prefix+f.Variable] = f
	}
	out := make(map[string]any)
	var errs []error
	for _, entry := range src.Environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		f, ok := known[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%w: environment variable %s does not exist", ErrInvalid, name))
			continue
		}
		parsed, err := f.parse(value)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: environment variable %s: %w", ErrInvalid, name, err))
			continue
		}
		set(out, f.Path, parsed)
	}
	return out, errors.Join(errs...)
}

// parse reads a value as YAML would, a list also as words with commas between. Texts and durations are taken as they
// are.
func (f Field) parse(value string) (any, error) {
	switch f.Type.Kind() {
	case reflect.String, reflect.Int64: // the latter are durations
		return value, nil
	case reflect.Slice:
		var out []any
		for word := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
			if word = strings.TrimSpace(word); word != "" {
				out = append(out, word)
			}
		}
		return out, nil
	}
	m, err := yaml.Parser().Unmarshal([]byte("value: " + value))
	if err != nil {
		return nil, fmt.Errorf("%q is not a value", value)
	}
	return m["value"], nil
}

func set(m map[string]any, path []string, v any) {
	for _, key := range path[:len(path)-1] {
		next, ok := m[key].(map[string]any)
		if !ok {
			next = make(map[string]any)
			m[key] = next
		}
		m = next
	}
	m[path[len(path)-1]] = v
}
