package middleware

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The layouts of the augmented prompt.
const (
	LayoutDefault       = "default"       // a note stands in the prompt as soon as it is written
	LayoutCacheFriendly = "cacheFriendly" // memory changes only when the window's cut moves, so a prompt cache survives
)

// The orders in which observations are printed.
const (
	OrderOldest = "oldest" // oldest first, which keeps a stable prefix
	OrderNewest = "newest" // newest first
)

// The ways in which recent raw tool outputs stay in front of the model.
const (
	RawOnce   = "once"   // each once: as its call and response in the window, or else in a section of its own
	RawAlways = "always" // always in the section, also when the window shows the pair
	RawOff    = "off"    // not kept
)

// Config is the configuration under the key observationalMemory. The zero value of a field takes its default, which the
// field's comment names; the zero Config is memory switched off. All amounts called tokens are estimates of the
// configured counter, corrected by the usage that the model reports.
type Config struct {
	// Enabled switches memory on. Off, the wrapped agent behaves as if the middleware were not there. Default false.
	Enabled bool `json:"enabled"`

	// Provider and Model name the model that writes notes, looked up in Deps.Models. Default: Deps.Model, then the model
	// of the agent whose call triggered the note.
	Provider string `json:"provider"`
	Model    string `json:"model"`

	// ReflectorProvider and ReflectorModel name another model for condensing notes. Default: the one that writes notes.
	ReflectorProvider string `json:"reflectorProvider"`
	ReflectorModel    string `json:"reflectorModel"`

	// Extractive lets notes be written without any model, by deterministic sentence selection. Default false: a model
	// writes, and the extractive twin takes over after FailuresBeforeFallback failures in a row.
	Extractive bool `json:"extractive"`

	// MessageTokenThreshold is the number of un-observed tokens past which an observation is written. Default 1000.
	MessageTokenThreshold int `json:"messageTokenThreshold"`

	// MaxObservationBatchTokens bounds what one observation covers; a larger backlog becomes several. Default 16000.
	MaxObservationBatchTokens int `json:"maxObservationBatchTokens"`

	// ObservationTokenThreshold is the number of tokens in active observations past which they are condensed into a
	// reflection. Default 2000.
	ObservationTokenThreshold int `json:"observationTokenThreshold"`

	// ReflectionConsolidationThreshold is the number of active reflections from which on they are condensed into one of
	// the next generation. At least 2. Default 5.
	ReflectionConsolidationThreshold int `json:"reflectionConsolidationThreshold"`

	// MaxMessageTokenBudget bounds the messages sent, in tokens. Default 8000.
	MaxMessageTokenBudget int `json:"maxMessageTokenBudget"`

	// HardMessageTokenLimit bounds them even when not everything is observed yet. At least MaxMessageTokenBudget.
	// Default four times that.
	HardMessageTokenLimit int `json:"hardMessageTokenLimit"`

	// MaxWait is how long a turn waits for the background when HardMessageTokenLimit would be passed. Default 2s.
	MaxWait time.Duration `json:"maxWait"`

	// MemoryTokenBudget bounds the Conversation Memory section, in tokens. Default 4000.
	MemoryTokenBudget int `json:"memoryTokenBudget"`

	// MaxReflectionsInContext and MaxObservationsInContext bound the notes of the section. Defaults 5 and 20.
	MaxReflectionsInContext  int `json:"maxReflectionsInContext"`
	MaxObservationsInContext int `json:"maxObservationsInContext"`

	// ObservationOrder is OrderOldest ("oldest") or OrderNewest ("newest"). Default "oldest", which keeps a stable prefix.
	ObservationOrder string `json:"observationOrder"`

	// Layout is LayoutDefault ("default") or LayoutCacheFriendly ("cacheFriendly": memory changes only when the window's
	// cut moves, and what changes with the query comes last). Default "default".
	Layout string `json:"layout"`

	// RawObservations is RawOnce ("once": each recent tool output stands in the prompt once), RawAlways ("always": in a
	// section of their own too) or RawOff ("off"). Default "once".
	RawObservations string `json:"rawObservations"`

	// RawObservationBuffer is how many of the newest tool outputs stay verbatim. Fewer than 3 invites semantic drift and
	// is warned about. Default 5.
	RawObservationBuffer int `json:"rawObservationBuffer"`

	// Archive keeps the messages that an observation covers, and notes that were condensed, so that recall reaches the
	// exact words later. Default true.
	Archive *bool `json:"archive"`

	// AppNames lists the ADK apps whose runs may write memory. Default: all.
	AppNames []string `json:"appNames"`

	// Workers is how many sessions are observed in parallel. Default 4.
	Workers int `json:"workers"`

	// QueueLimit bounds the sessions that wait for a worker; past it a trigger is dropped and counted, and the next turn
	// triggers again. Default 10000.
	QueueLimit int `json:"queueLimit"`

	// SessionCache bounds the sessions whose state is kept in this process; that of others is rebuilt from the store when
	// they speak again. Default 1000.
	SessionCache int `json:"sessionCache"`

	// LoadTimeout bounds reading the store within a turn; past it the turn goes on without memory. Default 1s.
	LoadTimeout time.Duration `json:"loadTimeout"`

	// ObserverTimeout bounds one model call that writes a note. Default 60s.
	ObserverTimeout time.Duration `json:"observerTimeout"`

	// ObserverAttempts is how often one note is tried before the trigger is given up. Default 2.
	ObserverAttempts int `json:"observerAttempts"`

	// FailuresBeforeFallback is how many triggers of a session may fail in a row, model errors and rejected notes alike,
	// before the extractive twin writes its notes; a negative number means never. Default 3.
	FailuresBeforeFallback int `json:"failuresBeforeFallback"`

	// ObserverPrompt and ReflectorPrompt replace the built-in instructions. Default: the embedded prompt.md files.
	ObserverPrompt  string `json:"observerPrompt"`
	ReflectorPrompt string `json:"reflectorPrompt"`

	// RecordTurns is how many model calls of each session are kept in memory for [Middleware.Turns] and the inspector
	// page, prompt sections included. Default 0: none.
	RecordTurns int `json:"recordTurns"`

	// CaptureContent puts message and note text into spans. It is personal data. Default false.
	CaptureContent bool `json:"captureContent"`
}

// WithDefaults returns a copy in which every zero field has its default.
func (c Config) WithDefaults() Config {
	def(&c.MessageTokenThreshold, 1000)
	def(&c.MaxObservationBatchTokens, 16000)
	def(&c.ObservationTokenThreshold, 2000)
	def(&c.ReflectionConsolidationThreshold, 5)
	def(&c.MaxMessageTokenBudget, 8000)
	def(&c.HardMessageTokenLimit, 4*c.MaxMessageTokenBudget)
	def(&c.MaxWait, 2*time.Second)
	def(&c.MemoryTokenBudget, 4000)
	def(&c.MaxReflectionsInContext, 5)
	def(&c.MaxObservationsInContext, 20)
	def(&c.ObservationOrder, OrderOldest)
	def(&c.Layout, LayoutDefault)
	def(&c.RawObservations, RawOnce)
	def(&c.RawObservationBuffer, 5)
	if c.Archive == nil {
		keep := true
		c.Archive = &keep
	}
	def(&c.Workers, 4)
	def(&c.QueueLimit, 10_000)
	def(&c.SessionCache, 1000)
	def(&c.LoadTimeout, time.Second)
	def(&c.ObserverTimeout, time.Minute)
	def(&c.ObserverAttempts, 2)
	def(&c.FailuresBeforeFallback, 3)
	c.AppNames = slices.Clone(c.AppNames)
	return c
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every fault of a configuration that has its defaults, by field name. The error wraps
// [ErrInvalidConfig].
func (c Config) Validate() error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s %s", ErrInvalidConfig, field, fmt.Sprintf(format, args...)))
	}
	positive := []struct {
		field string
		value int64
	}{
		{"messageTokenThreshold", int64(c.MessageTokenThreshold)},
		{"maxObservationBatchTokens", int64(c.MaxObservationBatchTokens)},
		{"observationTokenThreshold", int64(c.ObservationTokenThreshold)},
		{"maxMessageTokenBudget", int64(c.MaxMessageTokenBudget)},
		{"maxWait", int64(c.MaxWait)},
		{"memoryTokenBudget", int64(c.MemoryTokenBudget)},
		{"maxReflectionsInContext", int64(c.MaxReflectionsInContext)},
		{"maxObservationsInContext", int64(c.MaxObservationsInContext)},
		{"rawObservationBuffer", int64(c.RawObservationBuffer)},
		{"workers", int64(c.Workers)},
		{"queueLimit", int64(c.QueueLimit)},
		{"sessionCache", int64(c.SessionCache)},
		{"loadTimeout", int64(c.LoadTimeout)},
		{"observerTimeout", int64(c.ObserverTimeout)},
		{"observerAttempts", int64(c.ObserverAttempts)},
	}
	for _, p := range positive {
		if p.value <= 0 {
			fault(p.field, "is %d; it must be positive, or left out for the default", p.value)
		}
	}
	if c.RecordTurns < 0 {
		fault("recordTurns", "is %d; it cannot be negative", c.RecordTurns)
	}
	if c.ReflectionConsolidationThreshold < 2 {
		fault("reflectionConsolidationThreshold", "is %d; condensing needs at least 2 reflections", c.ReflectionConsolidationThreshold)
	}
	if c.HardMessageTokenLimit < c.MaxMessageTokenBudget {
		fault("hardMessageTokenLimit", "is %d, below maxMessageTokenBudget (%d)", c.HardMessageTokenLimit, c.MaxMessageTokenBudget)
	}
	if c.MaxObservationBatchTokens < c.MessageTokenThreshold {
		fault("maxObservationBatchTokens", "is %d, below messageTokenThreshold (%d)", c.MaxObservationBatchTokens, c.MessageTokenThreshold)
	}
	if (c.Provider == "") != (c.Model == "") {
		fault("provider and model", "go together; got %q and %q", c.Provider, c.Model)
	}
	if (c.ReflectorProvider == "") != (c.ReflectorModel == "") {
		fault("reflectorProvider and reflectorModel", "go together; got %q and %q", c.ReflectorProvider, c.ReflectorModel)
	}
	oneOf := func(field, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			fault(field, "is %q; it must be one of %q", value, allowed)
		}
	}
	oneOf("observationOrder", c.ObservationOrder, OrderOldest, OrderNewest)
	oneOf("layout", c.Layout, LayoutDefault, LayoutCacheFriendly)
	oneOf("rawObservations", c.RawObservations, RawOnce, RawAlways, RawOff)
	if slices.Contains(c.AppNames, "") {
		fault("appNames", "holds an empty name")
	}
	return errors.Join(errs...)
}
