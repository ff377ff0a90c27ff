package rag

import (
	"context"
	"hash/fnv"
	"math"

	"github.com/adkmemory/adkmemory/backends/fulltext"
)

// localDimensions is a multiple of what a conversation's message has of terms and parts.
const localDimensions = 512

// Local is an [Embedder] without network or model: it hashes the terms of a text, as the full-text index knows them, and
// their runs of three characters into a vector of fixed length. Equal texts have equal vectors everywhere. It finds
// misspelt and compounded words that full-text search does not. The zero value is ready.
type Local struct{}

var _ Embedder = Local{}

// Model implements [Embedder].
func (Local) Model() string { return "local-hash-512-v1" }

// Embed implements [Embedder].
func (Local) Embed(_ context.Context, _ Task, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = embedLocal(t)
	}
	return out, nil
}

func embedLocal(text string) []float32 {
	counts := map[string]float64{}
	for _, t := range fulltext.Analyze(text) {
		counts[t]++
		runes := []rune("^" + t + "$")
		for i := 0; i+3 <= len(runes); i++ {
			counts["\x00"+string(runes[i:i+3])] += 0.3
		}
	}
	v := make([]float64, localDimensions)
	sum := 0.0
	for feature, n := range counts {
		h := fnv.New64a()
		_, _ = h.Write([]byte(feature))
		bits := h.Sum64()
		sign := 1.0
		if bits>>63 == 1 {
			sign = -1
		}
		v[bits%localDimensions] += sign * math.Round(1024*math.Sqrt(n))
	}
	for _, x := range v {
		sum += x * x
	}
	out := make([]float32, localDimensions)
	if sum == 0 {
		return out
	}
	for i, x := range v {
		out[i] = float32(x / math.Sqrt(sum))
	}
	return out
}
