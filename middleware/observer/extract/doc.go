// Package extract condenses text without a model: it picks the sentences that hold the most distinct facts for their
// length, and lists the facts that no picked sentence holds. It is what the extractive Observer and Reflector share.
//
// Call [Note].
package extract
