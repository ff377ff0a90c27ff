// Package inspect is a web page that shows what an agent remembers: a list of sessions, the time line of each from
// messages to observations to reflections, what the last model call was sent, section by section, tokens sent against
// history over the last calls, and the exact text that stood in the prompt.
//
// [New] returns an http.Handler to mount under any prefix:
//
//	page, err := inspect.New(inspect.Config{
//		Store: store, Apps: []string{"travel"}, Turns: mem, Memory: config, Authorize: operatorsOnly,
//	})
//	mux.Handle("/debug/memory/", http.StripPrefix("/debug/memory", page))
//
// It only reads, and only for whom Authorize allows. Everything shown is personal data: serve it over TLS, to people who
// may read the conversations themselves. The pages hold no script and load nothing from elsewhere; what people and
// models wrote is escaped as text.
package inspect
