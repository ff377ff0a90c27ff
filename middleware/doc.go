// Package middleware gives a Google ADK agent a memory: old turns become notes, notes stand in the prompt under a token
// budget, and the request is trimmed to a window of recent messages, so that the token bill stays flat while nothing is
// forgotten.
//
// Call [New] and wrap the agent's model with [Middleware.Model]; or register [Middleware.Plugin] with a runner, which
// covers all of its agents. [Middleware.Start] and [Middleware.Stop] frame the application's life.
//
// A turn never fails because of memory and never waits for a note, except at the hard limit, where it waits for at most
// Config.MaxWait. RunLive is not covered: ADK's live connection does not pass through the model's GenerateContent.
// What was said live is observed by the next ordinary turn.
package middleware
