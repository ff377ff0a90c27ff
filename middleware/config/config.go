// Package config loads the configuration from a YAML file and the environment. [Load] is all there is to it; an
// application with settings of its own embeds [Settings] in a struct and calls [LoadInto].
package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"github.com/adkmemory/adkmemory/middleware"
)

// Settings are what a file and the environment can say.
type Settings struct {
	// ObservationalMemory is the configuration of the middleware. Without it memory is off.
	ObservationalMemory middleware.Config `json:"observationalMemory"`

	// Database says where memory is kept.
	Database Database `json:"database"`
}

// Database names a database.
type Database struct {
	// DSN is the path of a SQLite file ("memory.db", "sqlite:memory.db") or the address of a Postgres server
	// ("postgres://user:password@host/database"). It may hold a password: better in the environment than in a file.
	DSN string `json:"dsn"`
}

// Source says where settings come from. What a later one says holds: defaults, File, Environment.
type Source struct {
	// File is the path of a YAML file. Default: none.
	File string

	// Environment holds "NAME=value" as os.Environ returns it; only names that begin with Prefix count. Default: none.
	Environment []string

	// Prefix begins the names. Default [DefaultPrefix].
	Prefix string
}

// DefaultPrefix begins the environment variables of [Settings]: observationalMemory.maxWait is
// ADKMEMORY_OBSERVATIONAL_MEMORY_MAX_WAIT.
const DefaultPrefix = "ADKMEMORY_"

// ErrInvalid is wrapped by every fault of a file or the environment, beside [middleware.ErrInvalidConfig] for values
// that the middleware refuses.
var ErrInvalid = errors.New("adkmemory: invalid settings")

// Load reads the settings and checks them. All faults are reported at once, by field: keys and variables that do not
// exist, values of a wrong type, and what [middleware.Config.Validate] says. Defaults are not filled in.
func Load(src Source) (Settings, error) {
	var s Settings
	err := LoadInto(&s, src)
	return s, err
}

// LoadInto is [Load] for an application's own struct, to whose pointer into points. Its fields carry json tags;
// [Settings] is embedded with the tag `json:",squash"`.
func LoadInto(into any, src Source) error {
	k := koanf.New("\x00") // no key holds the separator: keys are never split
	var errs []error
	if src.File != "" {
		raw, err := os.ReadFile(src.File)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if err := k.Load(rawbytes.Provider(raw), yaml.Parser()); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInvalid, src.File, err)
		}
	}
	overrides, err := environment(reflect.TypeOf(into).Elem(), src)
	errs = append(errs, err)
	if err := k.Load(confmap.Provider(overrides, ""), nil); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	errs = append(errs, unknown(reflect.TypeOf(into).Elem(), k.Raw())...)
	err = k.UnmarshalWithConf("", into, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName:    "json",
		MatchName:  func(key, field string) bool { return key == field },
		DecodeHook: duration,
	}})
	for _, fault := range leaves(err) {
		errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, fault))
	}
	if s := settingsOf(into); s != nil && s.ObservationalMemory.Enabled {
		errs = append(errs, s.ObservationalMemory.WithDefaults().Validate())
	}
	return errors.Join(errs...)
}

func settingsOf(into any) *Settings {
	if s, ok := into.(*Settings); ok {
		return s
	}
	v := reflect.ValueOf(into).Elem().FieldByName("Settings")
	if !v.IsValid() || !v.CanAddr() {
		return nil
	}
	s, _ := v.Addr().Interface().(*Settings)
	return s
}

// duration takes "1.5s" and refuses a bare number, whose unit is anybody's guess.
func duration(_, to reflect.Type, v any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return v, nil
	}
	s, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("is %v; a duration has a unit, such as 2s or 500ms", v)
	}
	return time.ParseDuration(s)
}

// leaves takes the errors of a decoder apart.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	var out []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the tree itself is walked
		for _, e := range joined.Unwrap() {
			out = append(out, leaves(e)...)
		}
		return out
	}
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "decoding failed") {
		return leaves(inner)
	}
	return []error{err}
}
