// Package adkv1 gives the middleware to agents on google.golang.org/adk, the first major version: wrap the agent's model
// with [Model] instead of middleware.Middleware.Model. Everything else, configuration, stores and tools included, is the
// same. Programs that do not import this package do not link the first version.
package adkv1
