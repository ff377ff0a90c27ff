//go:build !unix

package pgtest

import "context"

// Cluster stands for a throwaway server, which this system cannot have: set [Env].
type Cluster struct{}

// NewCluster says what to do instead.
func NewCluster(context.Context) (*Cluster, error) { return nil, errMissing }

// DSN returns nothing.
func (*Cluster) DSN() string { return "" }

// Start does nothing.
func (*Cluster) Start(context.Context) error { return errMissing }

// Stop does nothing.
func (*Cluster) Stop() error { return nil }

// Remove does nothing.
func (*Cluster) Remove() error { return nil }
