// Package layers holds the eight layers of a retriever, one a file. [Standard] makes those that need a store.
package layers
