// Package soak drives several processes over one Postgres, kills them at random, and checks in the end that every message
// was observed exactly once. It holds tests only: a short run with the others, a long one with make soak.
package soak
