package encrypted_test

import (
	"fmt"

	"github.com/adkmemory/adkmemory/backends/encrypted"
	"github.com/adkmemory/adkmemory/backends/inmemory"
)

func ExampleNew() {
	// In production the line comes from a secret: the first key is the current one, the others only read.
	ring, err := encrypted.ParseRing("2026-01:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := encrypted.New(inmemory.New(), encrypted.Config{Keys: ring})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println("ready")
	// Output: ready
}
