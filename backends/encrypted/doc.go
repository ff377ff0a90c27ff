// Package encrypted keeps the text of memory encrypted at rest, in any backend: [New] wraps a [backends.Store].
//
// Encrypted are the texts of notes, the texts and contents of archived messages, and the fingerprints of cursors:
// AES-256-GCM under a key derived for each session from the one that a [Keys] provider names, bound to the tenant, the
// session and the row, so that a row that is moved, swapped or changed does not open. What memory is found by stays
// readable: app, user, session, branch and message ids, times, sizes, authors and roles.
//
// Nobody can search what is encrypted: [Store.Search] returns [ErrSearchOff], and the wrapped store's entries, vectors
// and triples are not offered.
//
// To rotate, make the provider name a new key as the current one and keep the old ones: new rows use the new key, old
// rows stay readable under theirs until they are swept.
package encrypted
