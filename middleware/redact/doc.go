// Package redact takes secrets and personal data out of what memory keeps: before a message reaches the Observer's
// model, the store or an embedder. [New] makes the default redactor; give it to middleware.Deps.Redactor.
//
// It recognises shapes, nothing more: a name, an address in prose or a secret without a shape passes. What the agent
// itself sees in its window is not touched.
package redact
