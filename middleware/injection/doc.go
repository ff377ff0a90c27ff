// Package injection holds one test: whatever users, tools and models say, nothing of it becomes structure of a prompt
// that the library builds, on any path and after a round trip through every backend.
package injection
