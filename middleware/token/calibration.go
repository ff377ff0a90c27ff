package token

import "sync"

const (
	minScale = 0.5
	maxScale = 2.0

	minWeight     = 0.2 // of the newest sample, once there are enough of them
	minSample     = 32  // estimated tokens; below it, a model's fixed overhead says nothing about text
	maxModels     = 128
	priorSamples  = 1.0
	neutralFactor = 1.0
)

// Calibration learns, for each model, the factor between the estimate and the prompt tokens that the model reports. The
// factor starts at 1, is a mean of the first samples and then a moving average, and stays within 0.5 and 2, so that one
// odd report cannot empty or flood a prompt. It remembers 128 models; one more replaces the one learned about
// longest ago.
//
// The zero value is ready. It is safe for concurrent use.
type Calibration struct {
	mu     sync.RWMutex
	clock  uint64
	models map[string]modelFactor
}

type modelFactor struct {
	factor  float64
	samples float64
	used    uint64
}

// Scale returns the factor by which to multiply an estimate for model; 1 for a model nothing was learned about, and on
// a nil receiver.
func (c *Calibration) Scale(model string) float64 {
	if c == nil {
		return neutralFactor
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if m, ok := c.models[model]; ok {
		return m.factor
	}
	return neutralFactor
}

// Learn takes in that a prompt estimated at estimated tokens, unscaled, was reported by model as reported tokens. Samples
// of fewer than 32 estimated tokens, and reports of 0 or less, teach nothing.
func (c *Calibration) Learn(model string, estimated, reported int) {
	if c == nil || estimated < minSample || reported <= 0 {
		return
	}
	ratio := min(max(float64(reported)/float64(estimated), minScale), maxScale)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	m, ok := c.models[model]
	if !ok {
		c.makeRoom()
		m = modelFactor{factor: neutralFactor, samples: priorSamples}
	}
	m.samples++
	m.factor += max(1/m.samples, minWeight) * (ratio - m.factor)
	m.used = c.clock
	c.models[model] = m
}

func (c *Calibration) makeRoom() {
	if c.models == nil {
		c.models = make(map[string]modelFactor)
	}
	if len(c.models) < maxModels {
		return
	}
	oldest, at := "", c.clock
	for name, m := range c.models {
		if m.used < at {
			oldest, at = name, m.used
		}
	}
	delete(c.models, oldest)
}
