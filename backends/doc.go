// Package backends holds the contracts and domain types of adkmemory's storage: what a session, a message, an
// observation, a reflection and a cursor are, and which roles a store plays. It imports the standard library only.
//
// Start with [Store], the sum of the roles. Implementations live beneath this folder: inmemory (the reference),
// sqlite and postgres (both over gormstore). A backend of your own passes the suite in backendtest.
package backends
