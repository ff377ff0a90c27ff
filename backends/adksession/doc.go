// Package adksession is an ADK session.Service on the database that holds the memory, whose cost per turn does not grow
// with the session, and in which observed messages can be replaced by a summary while a turn runs.
//
// Start with [New]. Give the [Service] to ADK's runner, and [Service.CompactMessages] to the memory as its compactor:
//
//	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{Reader: store.Reader()})
//	r, err := runner.New(runner.Config{SessionService: sessions, …})
//	mem.SetCompactor(sessions.CompactMessages)
//
// Events are ordered by a sequence of their session's own, never by time, and found by it through the primary key. Each
// process keeps a bounded cache of decoded events: when nothing was written elsewhere a Get is one query, however long
// the session, and otherwise it reads what is new. State is one row a key, so that two sessions which change different
// keys of their app or user lose nothing.
//
// It behaves as ADK's own database service does, including the refusal of an append through a session object that
// somebody else's append has made stale ([ErrStale]). Compaction does not make an object stale.
package adksession
