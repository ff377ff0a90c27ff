// Package window decides which contents of a model request are sent. [Map] finds the session events behind each content
// of a request that ADK has built; [Select] keeps what must stay and as much of the rest as the budget allows.
//
// Neither modifies a content: what is kept is kept by pointer, byte for byte, thought signatures included.
package window
