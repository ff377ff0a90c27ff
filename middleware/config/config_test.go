package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/config"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const example = `
observationalMemory:
  enabled: true
  provider: gemini
  model: gemini-2.5-flash
  messageTokenThreshold: 500
  observationTokenThreshold: 900
  maxMessageTokenBudget: 4000
  maxWait: 1.5s
  archive: false
  appNames: [shop, desk]
database:
  dsn: memory.db
`

func TestLoad(t *testing.T) {
	t.Parallel()
	no := false
	want := config.Settings{
		ObservationalMemory: middleware.Config{
			Enabled: true, Provider: "gemini", Model: "gemini-2.5-flash", MessageTokenThreshold: 500, ObservationTokenThreshold: 900,
			MaxMessageTokenBudget: 4000, MaxWait: 1500 * time.Millisecond, Archive: &no, AppNames: []string{"shop", "desk"},
		},
		Database: config.Database{DSN: "memory.db"},
	}
	t.Run("CFG-1 a file", func(t *testing.T) {
		t.Parallel()
		got, err := config.Load(config.Source{File: file(t, example)})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("CFG-1 the environment alone", func(t *testing.T) {
		t.Parallel()
		got, err := config.Load(config.Source{Environment: []string{
			"PATH=/bin", "ADKMEMORY_OBSERVATIONAL_MEMORY_ENABLED=true", "ADKMEMORY_OBSERVATIONAL_MEMORY_PROVIDER=gemini",
			"ADKMEMORY_OBSERVATIONAL_MEMORY_MODEL=gemini-2.5-flash", "ADKMEMORY_OBSERVATIONAL_MEMORY_MESSAGE_TOKEN_THRESHOLD=500",
			"ADKMEMORY_OBSERVATIONAL_MEMORY_OBSERVATION_TOKEN_THRESHOLD=900", "ADKMEMORY_OBSERVATIONAL_MEMORY_MAX_MESSAGE_TOKEN_BUDGET=4000",
			"ADKMEMORY_OBSERVATIONAL_MEMORY_MAX_WAIT=1.5s", "ADKMEMORY_OBSERVATIONAL_MEMORY_ARCHIVE=false",
			"ADKMEMORY_OBSERVATIONAL_MEMORY_APP_NAMES=shop, desk", "ADKMEMORY_DATABASE_DSN=memory.db",
		}})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("CFG-1 the environment overrides the file, field by field", func(t *testing.T) {
		t.Parallel()
		got, err := config.Load(config.Source{File: file(t, example), Prefix: "APP_", Environment: []string{
			"APP_DATABASE_DSN=postgres://u:p@h/d", "APP_OBSERVATIONAL_MEMORY_MODEL=42", "ADKMEMORY_NONSENSE=1",
		}})
		if err != nil || got.Database.DSN != "postgres://u:p@h/d" || got.ObservationalMemory.Model != "42" || got.ObservationalMemory.MessageTokenThreshold != 500 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("CFG-2 nothing at all is memory off", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"", "observationalMemory:\n", "database: {dsn: x}\n"} {
			got, err := config.Load(config.Source{File: file(t, text)})
			if err != nil || got.ObservationalMemory.Enabled {
				t.Errorf("%q: %+v, %v", text, got, err)
			}
		}
	})
	t.Run("CFG-5 all faults at once, by name", func(t *testing.T) {
		t.Parallel()
		_, err := config.Load(config.Source{
			File: file(t, `
observationalMemory:
  enabled: true
  workers: -1
  layout: sideways
  MaxWait: 2s
  loadTimeout: 5
  observerTimeout: soon
  queueLimit: many
  archive: "no"
  messagetokenthreshold: 3
database:
  url: x
databse: {}
`),
			Environment: []string{"ADKMEMORY_DATABASE_DNS=x", "ADKMEMORY_OBSERVATIONAL_MEMORY_SESSION_CACHE=big"},
		})
		if !errors.Is(err, config.ErrInvalid) || !errors.Is(err, middleware.ErrInvalidConfig) {
			t.Fatal(err)
		}
		for _, want := range []string{
			"workers is -1", `layout is "sideways"`, "observationalMemory.MaxWait does not exist", "loadTimeout", "a duration has a unit",
			"observerTimeout", "queueLimit", "archive", "observationalMemory.messagetokenthreshold does not exist", "database.url does not exist",
			"databse does not exist", "ADKMEMORY_DATABASE_DNS does not exist", "sessionCache",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not reported in\n%v", want, err)
			}
		}
	})
	t.Run("CFG-5 a file that is missing or no YAML", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/does/not/exist", file(t, "a: [")} {
			if _, err := config.Load(config.Source{File: path}); !errors.Is(err, config.ErrInvalid) {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	t.Run("CFG-1 an application's own settings beside", func(t *testing.T) {
		t.Parallel()
		var s struct {
			config.Settings `json:",squash"`

			Listen string `json:"listen"`
		}
		err := config.LoadInto(&s, config.Source{File: file(t, example+"listen: :1\n"), Environment: []string{"ADKMEMORY_LISTEN=:8080"}})
		if err != nil || s.Listen != ":8080" || s.Database.DSN != "memory.db" {
			t.Errorf("%+v, %v", s, err)
		}
		err = config.LoadInto(&s, config.Source{Environment: []string{"ADKMEMORY_OBSERVATIONAL_MEMORY_WORKERS=-1"}})
		if err == nil || !strings.Contains(err.Error(), "workers is -1") {
			t.Error(err)
		}
	})
}
