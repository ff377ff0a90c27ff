// Package token estimates how many tokens a text or a genai content costs a model, without a tokenizer, without
// allocating, and without dependencies beyond the genai types.
//
// Start with [Estimator], whose zero value is ready, and [Content] for whole contents. [Calibration] learns per model how
// far the estimate is off. A [Counter] of your own, such as an exact tokenizer, can replace the estimator everywhere.
package token

// Counter counts the tokens of a text. Implementations are safe for concurrent use, return 0 for the empty text only,
// and never fail: what cannot be counted is estimated.
type Counter interface {
	Count(text string) int
}
